#pragma once

#include <cstdint>
#include <functional>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "examples/dynamic_sgd/learner.hpp"
#include "examples/dynamic_sgd/plan.hpp"

namespace dynamic_sgd {

/// One worker of a real job, which is started with one and given the others when it asks for them.
/// At the growth it waits, at step boundaries, until they are there; at the shrinking the ranks
/// that are too many kill themselves, and the survivors go on in the allreduce where they miss
/// them.
class ElasticJob {
 public:
  /// `learner` must outlive it.
  ElasticJob(const Plan& plan, Learner& learner);

  std::function<void(const StepInfo&)> on_step;  ///< called after each step, on every worker

  elastic::RunOutcome train();

 private:
  void wait_for(std::size_t workers, std::uint64_t epoch);
  void drop_to(std::size_t workers);
  void step();

  Plan plan_;
  Learner& learner_;
  elastic::Sampler sampler_;
  elastic::State state_;
  bool asked_ = false;
};

}  // namespace dynamic_sgd
