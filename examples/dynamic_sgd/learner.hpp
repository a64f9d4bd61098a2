#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <elastic/learning_rate.hpp>
#include <elastic/optimizers.hpp>
#include <elastic/state.hpp>

#include "examples/digits/dataset.hpp"
#include "examples/digits/network.hpp"

namespace dynamic_sgd {

struct LearnerOptions {
  std::size_t batch = 8;  ///< samples per worker and step
  double rate = 0.05;     ///< suits the batch of one worker
  double momentum = 0.9;
  elastic::ResizePolicy policy = elastic::ResizePolicy::kRamp;
  std::uint64_t seed = 1;  ///< of the first weights and of the order of samples
};

/// The sums of a step over samples, first those of a worker and then those of all workers.
struct StepSums {
  digits::Parameters gradient;
  std::array<float, 2> totals{};  ///< samples, loss

  void add(const StepSums& other);
};

/// The result of a step, the same on all workers.
struct StepInfo {
  std::int64_t step = 0;  ///< from 1
  std::size_t workers = 0;
  std::int64_t samples = 0;  ///< used since the start of the training
  double gamma = 0;
  double rate = 0;  ///< the base rate times gamma
  double loss = 0;  ///< mean over the step's samples, in nats
};

/// The arithmetic of a step, which does not know where the other workers are: in this process or in
/// others.
class Learner {
 public:
  /// `training` must outlive it.
  Learner(const LearnerOptions& options, std::span<const digits::Sample> training);

  /// Adds all that a joiner has to receive. It must stay where it is as long as `state` lives.
  void add_to(elastic::State& state);

  /// The sums over one worker's share, as indices of training samples, with the present weights.
  StepSums sums(std::span<const std::size_t> share);

  /// Takes the step, with the sums over all workers that contributed.
  StepInfo step(const StepSums& sums, std::size_t workers);

  const LearnerOptions& options() const { return options_; }
  const digits::Parameters& weights() const { return weights_; }
  std::size_t samples_in_epoch() const { return training_.size(); }

 private:
  LearnerOptions options_;
  std::span<const digits::Sample> training_;
  digits::Network network_;

  digits::Parameters weights_;
  elastic::MomentumSgd optimizer_;
  elastic::LearningRate learning_rate_;
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace dynamic_sgd
