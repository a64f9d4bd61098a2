#pragma once

#include <functional>
#include <memory>

#include "base/status.hpp"
#include "collectives/device/devices.hpp"
#include "coordinator/lane_view.hpp"
#include "coordinator/operation.hpp"
#include "coordinator/small_attempt.hpp"
#include "elastic/results.hpp"

namespace elastic::runtime {

/// Runs the operations of blocking collectives on this worker, under its present incarnation.
/// Thread-safe.
class OperationRunner {
 public:
  using MakeOperation = std::function<std::unique_ptr<coordinator::Operation>()>;

  virtual ~OperationRunner() = default;
  /// The members of the present view; throws if there is none.
  virtual std::shared_ptr<const coordinator::Members> members() const = 0;
  /// The members as the program saw them when it last asked for them, their number or its rank.
  virtual Contributors seen() const = 0;
  /// Flushes the named tensors: other ranks may be waiting for them.
  virtual void flush() = 0;
  /// Runs an operation in lane 0. For kAborted see Lane::run.
  virtual Result<Contributors> run(coordinator::Operation& operation) = 0;
  /// The same of the operation that `make` makes, or quicker without one, where the lane takes
  /// `small`. Both are the same call.
  virtual Result<Contributors> run(const coordinator::SmallAttempt& /*small*/,
                                   const MakeOperation& make) {
    return run(*make());
  }
  /// Leaves the job because of `why`: this worker lacks a result that others have. \returns the
  /// error in which the call is to end.
  virtual Status leave_without_result(const Status& why) = 0;
  /// When to fetch tensors from devices, for the present backend.
  virtual device::Fetch fetch() const = 0;
  /// Whether a root that is given as a rank is the worker that has it as the call is made, and no
  /// other one if that worker leaves before the call begins.
  virtual bool ranks_are_of_this_moment() const { return false; }
};

}  // namespace elastic::runtime
