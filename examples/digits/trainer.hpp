#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>

#include "examples/digits/dataset.hpp"
#include "examples/digits/network.hpp"
#include "examples/digits/usage.hpp"

namespace digits {

struct TrainerOptions {
  std::uint64_t epochs = 30;
  std::size_t batch = 16;  ///< samples per worker and step
  double rate = 0.02;      ///< suits the batch of one worker; the ramp scales it up
  double momentum = 0.9;
  std::uint64_t seed = 1;
  std::chrono::milliseconds least_step{0};  ///< shorter steps are drawn out, to be watched
};

/// What a step did, as far as all workers know it alike.
struct StepInfo {
  std::int64_t step = 0;  ///< from 1, counted over the whole job
  std::uint64_t generation = 0;
  std::size_t workers = 0;  ///< that contributed
  double samples = 0;       ///< that they used
  double gamma = 0;
  double rate = 0;         ///< the base rate times gamma
  double loss = 0;         ///< mean over the samples, in nats
  std::int64_t at_ns = 0;  ///< when the sums were there, on the monotonic clock
};

/// One worker's part in the training. Everything that it keeps from step to step is in its State,
/// so a worker that joins goes on where the others are, and survivors of a loss just go on.
class Trainer {
 public:
  Trainer(const TrainerOptions& options, Dataset data);

  std::function<void(std::int64_t)> before_allreduce;  ///< called in each step, with its number
  std::function<void(const StepInfo&)> on_step;        ///< called after each step
  std::function<void()> on_epoch;                      ///< called after the last step of each epoch

  /// Trains until the epochs are over, or this worker is asked to stop.
  elastic::RunOutcome train();

  std::int64_t steps() const { return steps_; }
  const Usage& usage() const { return usage_; }
  const Parameters& weights() const { return weights_; }
  const std::vector<Sample>& test_samples() const { return data_.test; }
  std::size_t samples_in_epoch() const { return data_.training.size(); }
  double epoch_loss() const { return epoch_loss_; }  ///< mean over the last whole epoch, in nats

 private:
  bool finished() const;
  void step();
  void sum_over_share(std::span<const std::size_t> share);
  elastic::Contributors allreduce_sums();
  void end_epoch();

  TrainerOptions options_;
  Dataset data_;
  Network network_;

  // The state: the same on all workers after each step.
  Parameters weights_;
  Parameters momentum_;
  elastic::Sampler sampler_;
  elastic::LearningRateRamp ramp_;
  Usage usage_;
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;  // used in the whole training
  double loss_sum_ = 0;       // of this epoch
  double epoch_loss_ = 0;
  elastic::State state_;

  // What a step sums, first over this worker's share and then over all workers.
  Parameters gradient_;
  std::array<float, 2> totals_{};  // samples, loss
  std::vector<float> used_;        // 1 for each training sample in the sum
};

}  // namespace digits
