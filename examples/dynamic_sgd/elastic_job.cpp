#include "examples/dynamic_sgd/elastic_job.hpp"

#include <chrono>
#include <cstdio>
#include <signal.h>
#include <thread>
#include <vector>

#include "examples/dynamic_sgd/epochs.hpp"

namespace dynamic_sgd {

ElasticJob::ElasticJob(const Plan& plan, Learner& learner)
    : plan_(plan), learner_(learner), sampler_(learner.samples_in_epoch(), learner.options().seed) {
  learner_.add_to(state_);
  state_.add("sampler", sampler_);
}

elastic::RunOutcome ElasticJob::train() {
  return elastic::run(state_, [this] {
    for (std::uint64_t epoch = next_epoch(sampler_); epoch < plan_.epochs;
         epoch = next_epoch(sampler_)) {
      const std::size_t workers = plan_.workers_in(epoch);
      const auto present = static_cast<std::size_t>(elastic::size());
      if (present > workers) drop_to(workers);
      if (present < workers) {
        wait_for(workers, epoch);
      } else {
        step();
      }
      state_.commit();
    }
  });
}

/// All members do it alike, so that they come to the same step boundary together.
void ElasticJob::wait_for(std::size_t workers, std::uint64_t epoch) {
  if (!asked_ && elastic::rank() == 0) {
    asked_ = true;
    std::fprintf(stderr, "dynamic_sgd: epoch %llu waits for %zu workers, `elasticrun ctl add`\n",
                 static_cast<unsigned long long>(epoch),
                 workers - static_cast<std::size_t>(elastic::size()));
  }
  elastic::barrier();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// A worker that died while others are still in the last epoch's last sum would be missing in it;
/// hence the barrier.
void ElasticJob::drop_to(std::size_t workers) {
  elastic::barrier();
  if (static_cast<std::size_t>(elastic::rank()) >= workers) ::raise(SIGKILL);
}

void ElasticJob::step() {
  StepSums sums = learner_.sums(sampler_.next(learner_.options().batch));
  std::vector<elastic::TensorView> tensors;
  for (std::size_t at = 0; at < digits::Parameters::kTensors; ++at) {
    tensors.push_back(elastic::view(sums.gradient.tensor(at)));
  }
  tensors.push_back(elastic::view(std::span<float>(sums.totals)));
  const elastic::Contributors contributors = elastic::grouped_allreduce(tensors);
  sampler_.commit(contributors);
  const StepInfo info = learner_.step(sums, contributors.size());
  if (on_step) on_step(info);
}

}  // namespace dynamic_sgd
