#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "coordinator/group_operation.hpp"
#include "coordinator/operation.hpp"
#include "coordinator/tensor_request.hpp"
#include "coordinator/work_state.hpp"
#include "elastic/types.hpp"

namespace elastic::coordinator {

/// A named call that is no allreduce.
struct NamedCall {
  /// The shape, agreed on by the ranks before the call.
  TensorRequest request;
  /// Makes the operation for a view, each time that the call begins. On the coordinator's thread.
  std::function<std::unique_ptr<Operation>(const Members&)> make;
  /// Called with its result delivered, on the coordinator's thread: the error in which the call
  /// ends here all the same.
  std::function<Status()> conclude = {};
  /// Called where the call ends in kTimeout before it has begun, the latest one first: it has
  /// left nothing behind on the other ranks. On the coordinator's thread.
  std::function<void()> withdrawn = {};
  /// The workers that make the call, this one among them; those that have died since do not. Then
  /// `make` is on those of the view, as members of a view of their own. Null: all members.
  std::shared_ptr<const std::vector<WorkerId>> group = nullptr;
};

/// A named call as the program has submitted it, an allreduce or another one.
struct Submission {
  NamedCall call;                            ///< without `make` if it is an allreduce
  std::vector<TensorView> tensors;           ///< of an allreduce
  std::vector<ConstTensorView> inputs = {};  ///< empty: in place
  std::shared_ptr<detail::WorkState> work = nullptr;
  std::shared_ptr<device::StagedTensors> staged = nullptr;  ///< null: the tensors are used in place
  std::shared_ptr<GroupOutcome> group_outcome = nullptr;    ///< of a call of a group
  std::shared_ptr<int> last_joined = nullptr;               ///< of a join, for its result
  bool flush_after = false;  ///< the program blocked before it submitted the next one
  TimePoint since = Clock::now();
  TimePoint ordered = {};  ///< for the timeline: the ranks have agreed to run it
};

/// Those that are not complete, by name.
using Submissions = std::map<std::string, Submission>;

}  // namespace elastic::coordinator
