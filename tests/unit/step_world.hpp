#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic::testing {

/// A worker dies in a step: in its collective number `collective` (from 0), whose result has its
/// contribution (`counted`) or is that of the others.
struct Loss {
  std::size_t collective = 0;
  WorkerId worker = 0;
  bool counted = false;
};

/// Thrown by the collective of a worker that dies.
struct Death {};

/// The collectives of one step between workers that are threads: what Context::grouped_allreduce
/// promises, with losses where they are wanted. Adds in another order in each collective.
class StepWorld {
 public:
  /// `alive`: in rank order. At least one worker must survive the losses.
  StepWorld(std::vector<WorkerId> alive, std::vector<Loss> losses)
      : alive_(std::move(alive)), losses_(std::move(losses)) {}

  Contributors allreduce(WorkerId self, std::span<const TensorView> tensors, ReduceOp op);

  /// The workers that survived, after the step.
  const std::vector<WorkerId>& alive() const { return alive_; }
  std::size_t collectives() const { return number_; }

 private:
  void complete(ReduceOp op);
  bool dies(WorkerId worker, bool counted) const;

  std::vector<WorkerId> alive_;
  const std::vector<Loss> losses_;
  std::mutex mutex_;
  std::condition_variable completed_;
  std::size_t number_ = 0;
  std::map<WorkerId, std::span<const TensorView>> arrived_;
  Contributors contributors_;  // of the collective that was completed last
};

}  // namespace elastic::testing
