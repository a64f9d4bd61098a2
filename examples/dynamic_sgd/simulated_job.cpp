#include "examples/dynamic_sgd/simulated_job.hpp"

#include <numeric>

#include <elastic/sampler.hpp>

#include "examples/dynamic_sgd/epochs.hpp"

namespace dynamic_sgd {
namespace {

/// Lets the first `workers` stay, or as many join with the state of the first.
void resize(std::vector<elastic::Sampler>& samplers, std::size_t workers) {
  samplers.resize(workers, elastic::Sampler(samplers.front()));
  std::vector<elastic::WorkerId> members(workers);
  std::iota(members.begin(), members.end(), elastic::WorkerId{1});
  for (std::size_t rank = 0; rank < workers; ++rank) {
    samplers[rank].set_members(members, members[rank]);
  }
}

StepInfo step(std::vector<elastic::Sampler>& samplers, Learner& learner) {
  const std::size_t batch = learner.options().batch;
  std::vector<elastic::WorkerId> members;
  StepSums total = learner.sums(samplers.front().next(batch));
  members.push_back(1);
  for (std::size_t rank = 1; rank < samplers.size(); ++rank) {
    total.add(learner.sums(samplers[rank].next(batch)));
    members.push_back(rank + 1);
  }
  for (elastic::Sampler& sampler : samplers) sampler.commit(members);
  return learner.step(total, members.size());
}

}  // namespace

void train_simulated(const Plan& plan, Learner& learner,
                     const std::function<void(const StepInfo&)>& on_step) {
  std::vector<elastic::Sampler> samplers{{learner.samples_in_epoch(), learner.options().seed}};
  resize(samplers, 1);
  for (std::uint64_t epoch = 0; epoch < plan.epochs; epoch = next_epoch(samplers.front())) {
    const std::size_t workers = plan.workers_in(epoch);
    if (workers != samplers.size()) resize(samplers, workers);
    on_step(step(samplers, learner));
  }
}

}  // namespace dynamic_sgd
