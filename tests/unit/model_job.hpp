#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "elastic/global_batch.hpp"
#include "elastic/sampler.hpp"
#include "tests/unit/step_world.hpp"

namespace elastic::testing {

/// A worker that trains a model of a few weights, whose gradients depend on them, on the sample and
/// on random numbers, and differ much in size.
class ModelWorker {
 public:
  static constexpr std::size_t kSamples = 37;
  using Weights = std::array<float, 6>;

  ModelWorker(WorkerId id, const GlobalBatch::Options& options);

  WorkerId id() const { return id_; }
  Sampler& sampler() { return sampler_; }
  GlobalBatch& batches() { return batches_; }
  const Weights& weights() const { return weights_; }
  /// How often each sample of this epoch was used.
  const std::vector<float>& used() const { return used_in_epoch_; }

  void step(StepWorld& world);
  /// Takes over the state of `from`, as a joiner does.
  void take_over(const ModelWorker& from);

 private:
  void add_gradient(VirtualBatch& part);

  WorkerId id_;
  StepWorld* world_ = nullptr;
  Sampler sampler_{kSamples, 5};
  GlobalBatch batches_;
  Weights weights_{};
  std::vector<float> used_in_epoch_ = std::vector<float>(kSamples);

  Weights gradient_{};
  std::vector<float> used_ = std::vector<float>(kSamples);
};

/// Calls `act` for each of the workers in a thread of its own; those that die are gone afterwards.
void all_at_once(std::vector<std::unique_ptr<ModelWorker>>& workers,
                 const std::function<void(ModelWorker&)>& act);

/// Workers that take steps together, and may be lost or join.
class ModelJob {
 public:
  ModelJob(const GlobalBatch::Options& options, std::size_t workers) : options_(options) {
    join(workers);
  }

  /// Adds workers before a step.
  void join(std::size_t workers);
  void drop(std::size_t rank);

  /// Returns how many collectives it took.
  std::size_t step(const std::vector<Loss>& losses = {});

  ModelWorker& worker(std::size_t rank) { return *workers_[rank]; }
  std::size_t size() const { return workers_.size(); }

 private:
  void tell_members();

  GlobalBatch::Options options_;
  WorkerId last_id_ = 0;
  std::vector<std::unique_ptr<ModelWorker>> workers_;  // in rank order
};

}  // namespace elastic::testing
