#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "runtime/group_membership.hpp"

namespace elastic::simulation {

class ModelWorker;

/// Stands for elastic::Group: the real rules and names of its calls, on the real coordinator.
///
/// The program's own thread alone uses it.
class ModelGroup {
 public:
  using Make =
      std::function<std::unique_ptr<coordinator::Operation>(const coordinator::Members& members)>;

  /// `group`: one of group_rules.hpp.
  ModelGroup(ModelWorker& worker, std::size_t group);

  /// Whether this worker is in it, in the present view.
  bool has_this_worker();
  /// The workers that the rules have chosen; some may have left.
  const std::vector<WorkerId>& workers();
  /// Starts a call; a request without a name gets one.
  Result<std::shared_ptr<detail::WorkState>> submit(coordinator::TensorRequest request, Make make);
  /// The latest call, which had no name, has timed out before it began.
  void forget_latest() { membership_.forget_call(latest_name_); }
  /// That of the latest call, in the job.
  const std::string& latest_name() const { return latest_name_; }

 private:
  void renew();

  ModelWorker& worker_;
  runtime::GroupMembership membership_;
  std::string latest_name_;
};

}  // namespace elastic::simulation
