#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// The backends of the groups of ranks that make calls of their own in a view. Each is made when
/// its group first makes a call.
///
/// Owned by the thread that runs the lane's operation.
class GroupBackends {
 public:
  /// Makes a backend on the links of a group, whose ranks are on `hosts` (NativeOptions::hosts).
  using Make = std::function<std::unique_ptr<Backend>(std::shared_ptr<transport::Mesh> mesh,
                                                      std::vector<int> hosts)>;

  /// `mesh` and `hosts` are those of the view, and outlive this.
  GroupBackends(transport::Mesh& mesh, const plan::Hosts& hosts, Make make)
      : mesh_(mesh), hosts_(hosts), make_(std::move(make)) {}

  /// The backend of `ranks`: ascending, with this rank among them, and all linked with it.
  Backend& of(const std::vector<int>& ranks);

 private:
  /// A program has a few groups. The limit bounds the memory if it makes up new ones in each step.
  static constexpr std::size_t kMost = 256;

  transport::Mesh& mesh_;
  const plan::Hosts& hosts_;
  const Make make_;
  std::map<std::vector<int>, std::unique_ptr<Backend>> backends_;
};

}  // namespace elastic::collectives
