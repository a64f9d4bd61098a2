#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/training.hpp>

#include "examples/digits/dataset.hpp"
#include "examples/digits/model.hpp"
#include "examples/digits/network.hpp"
#include "examples/digits/schedule.hpp"
#include "examples/digits/usage.hpp"

namespace digits {

struct TrainerOptions {
  /// Passes over the data. With AdaScale what the steps are to be worth, in passes at the reference
  /// batch: it takes as many more as the schedule does to come to its end.
  std::uint64_t epochs = 30;
  /// Samples per step: of each worker, or in all (see elastic::BatchPolicy).
  elastic::GlobalBatch::Options batch{.batch = 16, .virtual_workers = 8};
  double rate = 0.02;  ///< suits such a batch; scaled up for more
  ScheduleKind schedule = ScheduleKind::kStep;
  double warm_up = 0;  ///< epochs
  elastic::ScalingRule rule = elastic::ScalingRule::kLinear;
  elastic::ResizePolicy policy = elastic::ResizePolicy::kRamp;
  std::optional<std::uint64_t> ramp_steps;  ///< as in elastic::LearningRate
  double momentum = 0.9;                    ///< the model's
  elastic::Compression compression;         ///< of the gradients; not with reproducible or AdaScale
  std::uint64_t seed = 1;
  std::chrono::milliseconds least_step{0};  ///< shorter steps are drawn out, to be watched
};

/// The result of a step, as far as all workers know it alike.
struct StepInfo {
  std::int64_t step = 0;  ///< from 1, counted over the whole job
  std::uint64_t generation = 0;
  std::size_t workers = 0;  ///< that contributed
  double samples = 0;       ///< that they used
  double gamma = 0;
  double rate = 0;         ///< the base rate times gamma
  double loss = 0;         ///< mean over the samples, in nats
  std::int64_t at_ns = 0;  ///< when the sums were there, on the monotonic clock
  bool skipped = false;    ///< for NaN or Inf in the gradient: the weights are as they were
};

/// One worker's part in the training. Everything that it keeps from step to step is in its State,
/// so a worker that joins goes on where the others are, and survivors of a loss just go on.
class Trainer {
 public:
  /// `model` is of the training samples of `data`, which must outlive this.
  Trainer(const TrainerOptions& options, const Dataset& data, std::unique_ptr<Model> model);

  /// Called right before the first allreduce of each step, with the step's number.
  std::function<void(std::int64_t)> before_allreduce;
  std::function<void(const StepInfo&)> on_step;  ///< called after each step
  std::function<void()> on_epoch;                ///< called after the last step of each epoch
  std::function<void()> after_commit;            ///< called after each step's commit

  /// Trains until the epochs are over (see TrainerOptions::epochs), or this worker is asked to
  /// stop.
  elastic::RunOutcome train();

  /// Before `train`: goes on from a checkpoint; nothing where there is none. Schedule and epochs
  /// remain those of the options. Other options that differ from the checkpoint have no effect: a
  /// line about each. Throws what State::load_from throws.
  std::optional<std::vector<std::string>> load_from(const std::string& path);

  const elastic::State& state() const { return state_; }  ///< to save in `after_commit`
  bool finished() const;
  std::int64_t steps() const { return steps_; }
  const Usage& usage() const { return usage_; }
  Parameters weights() const { return model_->weights(); }
  const std::vector<Sample>& test_samples() const { return data_.test; }
  std::size_t samples_in_epoch() const { return data_.training.size(); }
  /// The traffic of the gradients, if they are compressed.
  const elastic::GradientCompressor::Traffic& traffic() const { return compressor_.total(); }
  /// Mean over the steps that were taken in the last whole epoch with any, in nats.
  double epoch_loss() const { return epoch_loss_; }

 private:
  std::vector<std::string> options_without_effect() const;
  std::optional<DeviceSums> device_sums() const;
  void step();
  elastic::BatchSum sum_gradients();
  void add_gradients(const elastic::VirtualBatch& part);
  elastic::Contributors allreduce(std::span<const elastic::TensorView> tensors,
                                  elastic::ReduceOp op);
  static std::vector<elastic::NamedTensor> named(std::span<const elastic::TensorView> tensors);
  std::optional<elastic::Rate> update(const elastic::BatchSum& sum);
  void end_epoch();

  TrainerOptions options_;
  const Dataset& data_;

  // The state: the same on all workers after each step.
  std::unique_ptr<Model> model_;
  elastic::Sampler sampler_;
  elastic::GlobalBatch batches_;
  elastic::LearningRate learning_rate_;
  Usage usage_;
  std::int64_t steps_ = 0;
  double loss_sum_ = 0;             // of this epoch, without skipped steps
  std::uint64_t loss_samples_ = 0;  // that it is of
  double epoch_loss_ = 0;
  elastic::State state_;

  // This worker's own.
  elastic::GradientCompressor compressor_;
  /// The size of the latest step with a rate above 0.
  std::optional<elastic::GradientCompressor::StepSize> size_before_;
  bool in_allreduces_ = false;  // of the step: the first has been begun

  // The sums of a step over the samples of its batch.
  StepSums sums_;
  elastic::FiniteCheck finite_;
  elastic::GradientNoise::Moments moments_{};
};

}  // namespace digits
