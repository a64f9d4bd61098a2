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

/// A worker under one incarnation: how it is connected, and its named tensors.
class Incarnation {
 public:
  /// Joins the job, and throws what the caller sees where it cannot.
  Incarnation(Identity identity, const Options& options, const Backends& backends,
              std::shared_ptr<const transport::Arena> arena);

  ~Incarnation();

  Control& control() { return control_; }
  coordinator::Coordinator& coordinator() { return *coordinator_; }

  /// On this worker a result is missing that others have: it must not go on with other weights.
  Status leave_without_result(const Status& why);

 private:
  // In this order: the control thread outlives the coordinator's, which ends when its lane is
  // closed.
  Control control_;
  std::optional<coordinator::Coordinator> coordinator_;
};

}  // namespace elastic::runtime
