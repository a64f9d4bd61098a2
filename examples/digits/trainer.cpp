#include "examples/digits/trainer.hpp"

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace digits {
namespace {

double samples_in_all(const TrainerOptions& options, std::size_t samples_in_epoch) {
  return static_cast<double>(samples_in_epoch) * static_cast<double>(options.epochs);
}

elastic::LearningRate learning_rate(const TrainerOptions& options, std::size_t samples_in_epoch) {
  const double samples = samples_in_all(options, samples_in_epoch);
  const double warm_up = static_cast<double>(samples_in_epoch) * options.warm_up;
  return elastic::LearningRate(
      {.schedule = schedule(options.schedule, options.rate, samples, warm_up),
       .batch_reference = static_cast<double>(options.batch.batch),
       .rule = options.rule,
       .policy = options.policy,
       .ramp_steps = options.ramp_steps,
       .momentum = options.momentum});
}

/// Compression takes sums of floats only.
const TrainerOptions& checked(const TrainerOptions& options) {
  if (options.compression.kind == elastic::CompressionKind::kNone) return options;
  const char* other = nullptr;
  if (options.batch.policy == elastic::BatchPolicy::kReproducible) {
    other = "--batch-policy reproducible, which sums whole numbers";
  }
  if (options.rule == elastic::ScalingRule::kAdaScale) {
    other = "--rule adascale, which compares the workers' uncompressed gradients";
  }
  if (other == nullptr) return options;
  throw elastic::Error(elastic::ErrorCode::kInvalidArgument,
                       std::string("--compression (or ELASTIC_COMPRESSION) cannot be combined "
                                   "with ") +
                           other + "; leave out one of the two");
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, const Dataset& data, std::unique_ptr<Model> model)
    : options_(checked(options)),
      data_(data),
      model_(std::move(model)),
      sampler_(data_.training.size(), options.seed, data_.training.size()),
      batches_(
          [this](std::span<const elastic::TensorView> tensors, elastic::ReduceOp op) {
            const bool first = !std::exchange(in_allreduces_, true);
            if (first && before_allreduce) before_allreduce(steps_ + 1);
            return allreduce(tensors, op);
          },
          sampler_, options.batch),
      learning_rate_(learning_rate(options, data_.training.size())),
      usage_(data_.training.size()),
      compressor_(elastic::context(), options.compression),
      sums_(data_.training.size()),
      finite_({{"hidden weights", elastic::view(sums_.gradient.hidden_weights())},
               {"hidden biases", elastic::view(sums_.gradient.hidden_biases())},
               {"output weights", elastic::view(sums_.gradient.output_weights())},
               {"output biases", elastic::view(sums_.gradient.output_biases())}}) {
  model_->add_to(state_);
  state_.add("sampler", sampler_);
  state_.add("batches", batches_);
  state_.add("learning rate", learning_rate_);
  state_.add("steps", steps_);
  state_.add("loss sum", loss_sum_);
  state_.add("loss samples", loss_samples_);
  state_.add("epoch loss", epoch_loss_);
  state_.add("usage", usage_.times);
  state_.add("usage epochs", usage_.epochs);
  state_.add("usage used", usage_.used);
  state_.add("usage missed", usage_.missed);
  state_.add("usage twice", usage_.twice);
}

std::optional<std::vector<std::string>> Trainer::load_from(const std::string& path) {
  const elastic::Schedule given = learning_rate_.schedule();
  if (!state_.load_from(path)) return std::nullopt;
  learning_rate_.set_schedule(given);
  return options_without_effect();
}

std::vector<std::string> Trainer::options_without_effect() const {
  std::vector<std::string> lines;
  const auto compare = [&lines](const char* option, std::string_view given,
                                std::string_view loaded) {
    if (given == loaded) return;
    lines.push_back(std::string(option) + " " + std::string(given) +
                    " has no effect: the checkpoint's " + std::string(loaded) + " stays");
  };
  const elastic::GlobalBatch::Options& given = options_.batch;
  const elastic::GlobalBatch::Options& loaded = batches_.options();
  compare("--batch", std::to_string(given.batch), std::to_string(loaded.batch));
  compare("--virtual-workers", std::to_string(given.virtual_workers),
          std::to_string(loaded.virtual_workers));
  compare("--batch-policy", elastic::name_in(elastic::kBatchPolicies, given.policy),
          elastic::name_in(elastic::kBatchPolicies, loaded.policy));
  compare("--rule", elastic::name_in(elastic::kScalingRules, options_.rule),
          elastic::name_in(elastic::kScalingRules, learning_rate_.rule()));
  compare("--policy", elastic::name_in(elastic::kResizePolicies, options_.policy),
          elastic::name_in(elastic::kResizePolicies, learning_rate_.policy()));
  const std::uint64_t ramp_steps = learning_rate_.ramp().get().ramp_steps;
  if (options_.ramp_steps && learning_rate_.policy() == elastic::ResizePolicy::kRamp) {
    compare("--ramp-steps", std::to_string(*options_.ramp_steps),
            ramp_steps == 0 ? "default length" : std::to_string(ramp_steps));
  }
  compare("--seed", std::to_string(options_.seed), std::to_string(sampler_.seed()));
  return lines;
}

elastic::RunOutcome Trainer::train() {
  return elastic::run(state_, [this] {
    compressor_.reset();  // after an eviction there is no residual
    while (!finished()) {
      const auto earliest_end = std::chrono::steady_clock::now() + options_.least_step;
      step();
      if (options_.least_step.count() > 0) std::this_thread::sleep_until(earliest_end);
      state_.commit();
      if (after_commit) after_commit();
    }
  });
}

bool Trainer::finished() const {
  if (learning_rate_.rule() == elastic::ScalingRule::kAdaScale) {
    return learning_rate_.progress() >= samples_in_all(options_, sampler_.size());
  }
  return usage_.epochs >= static_cast<std::int64_t>(options_.epochs);
}

void Trainer::step() {
  const elastic::BatchSum sum = sum_gradients();
  const auto summed_at = std::chrono::steady_clock::now().time_since_epoch();
  usage_.add(sums_.used);
  const std::optional<elastic::Rate> taken = update(sum);
  const elastic::Rate rate = taken.value_or(elastic::Rate{});

  const auto samples = static_cast<double>(sum.samples);
  const auto loss = double{sums_.loss};
  ++steps_;
  if (taken) {
    loss_sum_ += loss;
    loss_samples_ += sum.samples;
  }
  if (on_step) {
    on_step({steps_, sum.contributors.generation(), sum.contributors.size(), samples, rate.gamma,
             rate.value(), samples > 0 ? loss / samples : 0,
             std::chrono::nanoseconds(summed_at).count(), !taken});
  }
  if (sampler_.done_in_epoch() == sampler_.size()) end_epoch();
}

/// The sums that can be reduced in place on a device. Options that read this worker's own part of
/// the sums take host memory only.
std::optional<DeviceSums> Trainer::device_sums() const {
  using Kind = elastic::CompressionKind;
  const Kind kind = options_.compression.kind;
  const bool stays = kind == Kind::kNone || kind == Kind::kF16 || kind == Kind::kBF16;
  const bool looks_at_own = !stays ||
                            batches_.options().policy == elastic::BatchPolicy::kReproducible ||
                            learning_rate_.rule() == elastic::ScalingRule::kAdaScale ||
                            elastic::context().options().non_finite == elastic::NonFinite::kError;
  return looks_at_own ? std::nullopt : model_->device_sums();
}

elastic::BatchSum Trainer::sum_gradients() {
  finite_.begin_step();
  model_->begin_step();
  in_allreduces_ = false;
  std::vector<elastic::TensorView> sums = sums_.tensors();
  if (learning_rate_.rule() == elastic::ScalingRule::kAdaScale) {
    sums.push_back(elastic::view(std::span<double>(moments_)));
  }
  return batches_.sum(sums, [this](const elastic::VirtualBatch& part) { add_gradients(part); });
}

void Trainer::add_gradients(const elastic::VirtualBatch& part) {
  model_->add_gradients(part.samples, sums_);
  if (device_sums()) return;
  model_->collect(sums_);
  finite_.before_sum();
  if (learning_rate_.rule() != elastic::ScalingRule::kAdaScale) return;
  // The samples in the gradient by now: under fixed_total these include the parts before this one.
  const double samples =
      moments_[elastic::GradientNoise::kSamples] + static_cast<double>(part.samples.size());
  moments_ = elastic::GradientNoise::moments({{sums_.gradient.values()}}, samples);
}

/// Gradients compressed, what is counted whole; all as one unit.
elastic::Contributors Trainer::allreduce(std::span<const elastic::TensorView> tensors,
                                         elastic::ReduceOp op) {
  const bool compresses = options_.compression.kind != elastic::CompressionKind::kNone;
  if (const auto sums = device_sums()) {
    auto contributors =
        compresses
            ? compressor_.grouped_allreduce(named(sums->tensors), op, sums->stream)
            : elastic::grouped_allreduce_async("sums", sums->tensors, op, sums->stream).wait();
    model_->collect(sums_);
    return contributors;
  }
  if (!compresses) return elastic::grouped_allreduce(tensors, op);
  return compressor_.grouped_allreduce(named(tensors), op);
}

std::vector<elastic::NamedTensor> Trainer::named(std::span<const elastic::TensorView> tensors) {
  constexpr const char* kNames[] = {"hidden weights", "hidden biases", "output weights",
                                    "output biases",  "loss",          "used",
                                    "moments"};
  std::vector<elastic::NamedTensor> named;
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    named.push_back({kNames[at], tensors[at], at >= Parameters::kTensors});
  }
  return named;
}

/// At an epoch's tail fewer samples are left than a full batch. Dividing by the full batch all the
/// same keeps the weight of each sample, and spares the rate a drop and a new ramp in every epoch.
/// Nothing where the step is skipped: the rate takes no step either, so that no change of gamma is
/// lost.
std::optional<elastic::Rate> Trainer::update(const elastic::BatchSum& sum) {
  if (!finite_.after_sum()) return std::nullopt;
  const auto batch = static_cast<double>(sum.full_batch);
  learning_rate_.observe(moments_, {{sums_.gradient.values()}});
  const elastic::Rate rate = learning_rate_.step(batch, static_cast<double>(sum.samples));
  model_->update(sums_.gradient, batch, rate);
  const elastic::GradientCompressor::StepSize size{rate.value(), batch};
  if (size.rate == 0) return rate;  // nothing held back loses its worth
  if (size_before_) compressor_.rescale(*size_before_, size);
  size_before_ = size;
  return rate;
}

void Trainer::end_epoch() {
  if (loss_samples_ > 0) epoch_loss_ = loss_sum_ / static_cast<double>(loss_samples_);
  loss_sum_ = 0;
  loss_samples_ = 0;
  usage_.audit();
  if (on_epoch) on_epoch();
}

}  // namespace digits
