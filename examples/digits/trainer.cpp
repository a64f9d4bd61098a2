#include "examples/digits/trainer.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "examples/digits/sgd.hpp"

namespace digits {

Trainer::Trainer(const TrainerOptions& options, Dataset data)
    : options_(options),
      data_(std::move(data)),
      weights_(initial_parameters(options.seed)),
      sampler_(data_.training.size(), options.seed),
      ramp_({.batch_reference = static_cast<double>(options.batch)}),
      usage_(data_.training.size()),
      used_(data_.training.size()) {
  state_.add("weights", weights_.values());
  state_.add("momentum", momentum_.values());
  state_.add("sampler", sampler_);
  state_.add("ramp", ramp_);
  state_.add("steps", steps_);
  state_.add("samples", samples_);
  state_.add("loss sum", loss_sum_);
  state_.add("epoch loss", epoch_loss_);
  state_.add("usage", usage_.times);
  state_.add("usage epochs", usage_.epochs);
  state_.add("usage used", usage_.used);
  state_.add("usage missed", usage_.missed);
  state_.add("usage twice", usage_.twice);
}

elastic::RunOutcome Trainer::train() {
  return elastic::run(state_, [this] {
    while (!finished()) {
      const auto earliest_end = std::chrono::steady_clock::now() + options_.least_step;
      step();
      if (options_.least_step.count() > 0) std::this_thread::sleep_until(earliest_end);
      state_.commit();
    }
  });
}

bool Trainer::finished() const {
  return usage_.epochs >= static_cast<std::int64_t>(options_.epochs);
}

void Trainer::step() {
  sum_over_share(sampler_.next(options_.batch));
  if (before_allreduce) before_allreduce(steps_ + 1);
  const elastic::Contributors contributors = allreduce_sums();
  const auto summed_at = std::chrono::steady_clock::now().time_since_epoch();
  sampler_.commit(contributors);
  usage_.add(used_);

  // At an epoch's tail fewer samples are left than a full batch. Dividing by the full batch all the
  // same keeps the weight of each sample, and spares the rate a drop and a new ramp in every epoch.
  const auto batch = static_cast<double>(contributors.size() * options_.batch);
  const double gamma = ramp_.step(batch);
  const auto in_all = static_cast<double>(data_.training.size() * options_.epochs);
  const double rate = gamma * base_rate(options_.rate, static_cast<double>(samples_), in_all);
  sgd_step(weights_, momentum_, gradient_, batch, options_.momentum, rate);

  const auto samples = double{totals_[0]};
  const auto loss = double{totals_[1]};
  ++steps_;
  samples_ += static_cast<std::int64_t>(samples);
  loss_sum_ += loss;
  if (on_step) {
    on_step({steps_, contributors.generation(), contributors.size(), samples, gamma, rate,
             samples > 0 ? loss / samples : 0, std::chrono::nanoseconds(summed_at).count()});
  }
  if (sampler_.done_in_epoch() == sampler_.size()) end_epoch();
}

void Trainer::sum_over_share(std::span<const std::size_t> share) {
  std::ranges::fill(gradient_.values(), 0.0F);
  std::ranges::fill(used_, 0.0F);
  totals_ = {};
  for (const std::size_t index : share) {
    totals_[0] += 1;
    totals_[1] += network_.add_gradient(weights_, data_.training[index], gradient_);
    used_[index] += 1;
  }
}

elastic::Contributors Trainer::allreduce_sums() {
  std::vector<elastic::TensorView> sums;
  for (std::size_t at = 0; at < Parameters::kTensors; ++at) {
    sums.push_back(elastic::view(gradient_.tensor(at)));
  }
  sums.push_back(elastic::view(std::span<float>(totals_)));
  sums.push_back(elastic::view(std::span<float>(used_)));
  return elastic::grouped_allreduce(sums, elastic::ReduceOp::kSum);
}

void Trainer::end_epoch() {
  epoch_loss_ = loss_sum_ / static_cast<double>(data_.training.size());
  loss_sum_ = 0;
  usage_.audit();
  if (on_epoch) on_epoch();
}

}  // namespace digits
