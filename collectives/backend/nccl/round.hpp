#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives::nccl {

/// One small message from each rank to each other: a phase of an operation in which the ranks have
/// met already. Received from the start on, so that who works on something else meanwhile sees what
/// the others have to say.
///
/// Of the thread that owns the mesh.
class Round {
 public:
  /// `bytes`: of each message, the same on all ranks. `tag` is of OpTag::kLater or more.
  Round(transport::Mesh& mesh, const transport::OpTag& tag, std::size_t bytes);
  /// Where it was not finished, the mesh forgets what was posted.
  ~Round();
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  void send(std::span<const std::byte> mine);
  /// After `send`: until the messages of all ranks are here. Fails as Mesh::run_until.
  Status finish();

  bool has_come(int rank) const;
  /// Of a rank whose message has come, or of this one after `send`.
  std::span<const std::byte> of(int rank) const;

 private:
  bool all_done() const;
  std::span<std::byte> place(int rank);

  transport::Mesh& mesh_;
  const std::size_t bytes_;
  std::vector<std::byte> messages_;  // by rank
  bool finished_ = false;
};

}  // namespace elastic::collectives::nccl
