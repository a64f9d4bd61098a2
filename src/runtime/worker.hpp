#pragma once

#include <functional>
#include <memory>

#include "base/status.hpp"
#include "collectives/device/devices.hpp"
#include "coordinator/lane_view.hpp"
#include "coordinator/operation.hpp"
#include "elastic/results.hpp"

namespace elastic::runtime {

/// The functions of this worker that blocking collectives use, under its present incarnation.
/// Thread-safe.
struct Worker {
  /// The members of the present view; throws if there is none.
  std::function<std::shared_ptr<const coordinator::Members>()> members;
  /// Flushes the named tensors: other ranks may be waiting for them.
  std::function<void()> flush;
  /// Runs an operation in lane 0. For kAborted see Lane::run.
  std::function<Result<Contributors>(coordinator::Operation&)> run;
  /// Leaves the job, because this worker lacks a result that others have. Returns the caller's
  /// error.
  std::function<Status(const Status&)> give_up;
  /// When to fetch tensors from devices, for the present backend.
  std::function<device::Fetch()> fetch;
};

}  // namespace elastic::runtime
