#include <algorithm>
#include <string>
#include <utility>

#include "elastic/optimizers.hpp"
#include "elastic/state.hpp"
#include "training/arguments.hpp"
#include "training/optimizer_step.hpp"
#include "training/same_options.hpp"

namespace elastic {

using training::require;

/// The factors of one step.
struct MomentumSgd::Factors {
  float share;  // the sum of gradients
  float decay;  // weights, on their way into the gradient
  float kept;   // the momentum as it was
  float ahead;  // the momentum as it is, in Nesterov's step
  float rate;
  float shrink;  // weights
};

MomentumSgd::MomentumSgd(std::vector<std::span<float>> parameters, const Options& options)
    : parameters_(std::move(parameters)),
      options_(options),
      same_options_(std::make_unique<detail::SameOptions>(
          "MomentumSgd",
          std::vector<detail::SameOptions::Option>{
              {"momentum", options.momentum},
              {"nesterov", options.nesterov ? 1.0 : 0.0},
              {"weight_decay", options.weight_decay},
              {"decay (0: coupled, 1: decoupled)",
               options.decay == WeightDecay::kDecoupled ? 1.0 : 0.0}})),
      momentum_(training::count_elements(parameters_)) {
  require(training::part_float(options.momentum), "MomentumSgd", "the momentum", options.momentum,
          "a number from 0 to below 1 in single precision");
  require(training::not_negative_float(options.weight_decay), "MomentumSgd", "the weight decay",
          options.weight_decay, "a finite number, at least 0, in single precision");
  if (options.form == Form::kVelocity) velocity_.resize(momentum_.size());
}

MomentumSgd::~MomentumSgd() = default;

void MomentumSgd::step(Gradient gradient_sum, double batch, const Rate& rate) {
  const bool coupled = options_.decay == WeightDecay::kCoupled;
  const double decay = options_.weight_decay;
  training::check_step("MomentumSgd", parameters_, gradient_sum, batch, rate.value(),
                       rate.momentum_scale, coupled ? 0 : decay);
  const Factors factors{static_cast<float>(1 / batch),
                        static_cast<float>(coupled ? decay : 0),
                        static_cast<float>(options_.momentum * rate.momentum_scale),
                        static_cast<float>(options_.momentum),
                        static_cast<float>(rate.value()),
                        static_cast<float>(coupled ? 1 : 1 - rate.value() * decay)};
  if (rate.momentum_scale == 0) std::ranges::fill(momentum_, 0.0F);  // 0 * NaN is no reset
  std::size_t offset = 0;
  for (std::size_t tensor = 0; tensor < parameters_.size(); ++tensor) {
    update(parameters_[tensor], gradient_sum[tensor], offset, factors);
    offset += parameters_[tensor].size();
  }
}

void MomentumSgd::update(std::span<float> w, std::span<const float> sum, std::size_t offset,
                         const Factors& by) {
  float* const u = momentum_.data() + offset;
  float* const velocity = velocity_.empty() ? nullptr : velocity_.data() + offset;
  for (std::size_t at = 0; at < w.size(); ++at) {
    const float g = by.share * sum[at] + by.decay * w[at];
    u[at] = by.kept * u[at] + g;
    const float v = by.rate * (options_.nesterov ? g + by.ahead * u[at] : u[at]);
    if (velocity != nullptr) velocity[at] = v;
    w[at] = by.shrink * w[at] - v;
  }
}

/// The form needs no comparison: with another one the state has other entries.
void MomentumSgd::add_to(State& state, std::string_view name) {
  state.add(std::string(name) + "/options", *same_options_);
  state.add(std::string(name) + "/momentum", momentum_);
  if (options_.form == Form::kVelocity) state.add(std::string(name) + "/velocity", velocity_);
}

}  // namespace elastic
