#pragma once

#include <memory>
#include <optional>

#include "base/status.hpp"
#include "collectives/transport/shm/arena.hpp"
#include "coordinator/coordinator.hpp"
#include "elastic/options.hpp"
#include "runtime/backends.hpp"
#include "runtime/control.hpp"

namespace elastic::runtime {

/// A worker under one incarnation: its connections, lanes and named tensors.
class WorkerSession {
 public:
  /// Joins the job, or throws the caller's error.
  WorkerSession(Identity identity, const Options& options, const Backends& backends,
                const StepClock& step_clock, std::shared_ptr<const transport::Arena> arena,
                timeline::Timeline& timeline);

  ~WorkerSession();

  Control& control() { return control_; }
  coordinator::Coordinator& coordinator() { return *coordinator_; }

  /// This worker lacks a result that others have, so it must not continue with other weights:
  /// leaves the job.
  Status leave_without_result(const Status& why);

 private:
  // The order matters: the control thread outlives the coordinator's, which ends when its lane is
  // closed.
  Control control_;
  std::optional<coordinator::Coordinator> coordinator_;
};

}  // namespace elastic::runtime
