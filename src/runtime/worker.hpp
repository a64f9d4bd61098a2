#pragma once

#include <functional>
#include <memory>

#include "base/status.hpp"
#include "collectives/device/devices.hpp"
#include "coordinator/lane_view.hpp"
#include "coordinator/operation.hpp"
#include "elastic/contributors.hpp"

namespace elastic::runtime {

/// What blocking collectives need of this worker, under whichever incarnation. Any thread.
struct Worker {
  /// Of the present view; throws while there is none.
  std::function<std::shared_ptr<const coordinator::Members>()> members;
  /// Sends off the named tensors for which others may be waiting.
  std::function<void()> flush;
  /// In lane 0. kAborted: see Lane::run.
  std::function<Result<Contributors>(coordinator::Operation&)> run;
  /// A result that others have is missing here: leaves the job, and says so.
  std::function<Status(const Status&)> give_up;
  /// What is right for the backend.
  std::function<device::Fetch()> fetch;
};

}  // namespace elastic::runtime
