#include "tests/unit/model_job.hpp"

#include <cmath>
#include <thread>

namespace elastic::testing {

ModelWorker::ModelWorker(WorkerId id, const GlobalBatch::Options& options)
    : id_(id),
      batches_([this](std::span<const TensorView> tensors,
                      ReduceOp op) { return world_->allreduce(id_, tensors, op); },
               sampler_, options) {}

void ModelWorker::step(StepWorld& world) {
  world_ = &world;
  if (sampler_.done_in_epoch() == sampler_.size()) used_in_epoch_.assign(kSamples, 0);
  const std::vector<TensorView> tensors{view(std::span<float>(gradient_)),
                                        view(std::span<float>(used_))};
  const BatchSum sum = batches_.sum(tensors, [this](VirtualBatch& part) { add_gradient(part); });
  const float rate = 0.1F / static_cast<float>(sum.full_batch);
  for (std::size_t k = 0; k < weights_.size(); ++k) weights_[k] -= rate * gradient_[k];
  for (std::size_t i = 0; i < kSamples; ++i) used_in_epoch_[i] += used_[i];
}

void ModelWorker::add_gradient(VirtualBatch& part) {
  for (const std::size_t index : part.samples) {
    used_[index] += 1;
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const int size = static_cast<int>(k) * 5 - 15;
      const auto phase = static_cast<float>(index * 7 + k) + std::ldexp(weights_[k], -size);
      const auto noise = static_cast<float>(part.random.uniform());
      gradient_[k] += std::ldexp(std::sin(phase) + noise, size);
    }
  }
}

void ModelWorker::take_over(const ModelWorker& from) {
  sampler_.load(from.sampler_.save());
  batches_.load(from.batches_.save());
  weights_ = from.weights_;
  used_in_epoch_ = from.used_in_epoch_;
}

void all_at_once(std::vector<std::unique_ptr<ModelWorker>>& workers,
                 const std::function<void(ModelWorker&)>& act) {
  std::vector<std::thread> threads;
  std::vector<char> died(workers.size());
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        act(*workers[rank]);
      } catch (const Death&) {
        died[rank] = 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t rank = workers.size(); rank-- > 0;) {
    if (died[rank] != 0) workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(rank));
  }
}

void ModelJob::join(std::size_t workers) {
  for (std::size_t n = 0; n < workers; ++n) {
    auto joiner = std::make_unique<ModelWorker>(++last_id_, options_);
    if (!workers_.empty()) joiner->take_over(*workers_.front());
    workers_.push_back(std::move(joiner));
  }
  tell_members();
}

/// The others are not told, and notice in the next step.
void ModelJob::drop(std::size_t rank) {
  workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(rank));
}

void ModelJob::tell_members() {
  std::vector<WorkerId> members;
  for (const auto& worker : workers_) members.push_back(worker->id());
  for (const auto& worker : workers_) worker->sampler().set_members(members, worker->id());
}

std::size_t ModelJob::step(const std::vector<Loss>& losses) {
  std::vector<WorkerId> alive;
  for (const auto& worker : workers_) alive.push_back(worker->id());
  StepWorld world(alive, losses);
  all_at_once(workers_, [&](ModelWorker& worker) { worker.step(world); });
  return world.collectives();
}

}  // namespace elastic::testing
