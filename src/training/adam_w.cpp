#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "elastic/optimizers.hpp"
#include "elastic/state.hpp"
#include "training/arguments.hpp"
#include "training/optimizer_step.hpp"
#include "training/same_options.hpp"

namespace elastic {

using training::require;

namespace {

/// The options that a step uses.
struct Betas {
  double beta1;
  double beta2;
  double epsilon;
};

Betas betas_of(const AdamW::Options& options, double gamma) {
  if (!options.scale_betas) return {options.beta1, options.beta2, options.epsilon};
  const auto scaled = [gamma](double beta) { return std::max(0.0, 1 - gamma * (1 - beta)); };
  return {scaled(options.beta1), scaled(options.beta2), options.epsilon / std::sqrt(gamma)};
}

/// Betas that are not scaled are left out, as in states that were saved before they could be.
std::vector<detail::SameOptions::Option> options_to_compare(const AdamW::Options& options) {
  std::vector<detail::SameOptions::Option> result{{"beta1", options.beta1},
                                                  {"beta2", options.beta2},
                                                  {"epsilon", options.epsilon},
                                                  {"weight_decay", options.weight_decay}};
  if (options.scale_betas) result.push_back({"scale_betas", 1});
  return result;
}

}  // namespace

AdamW::AdamW(std::vector<std::span<float>> parameters, const Options& options)
    : parameters_(std::move(parameters)),
      options_(options),
      same_options_(std::make_unique<detail::SameOptions>("AdamW", options_to_compare(options))),
      momentum_(training::count_elements(parameters_)),
      variance_(momentum_.size()) {
  constexpr auto kBeta = "a number from 0 to below 1 in single precision";
  require(training::part_float(options.beta1), "AdamW", "beta1", options.beta1, kBeta);
  require(training::part_float(options.beta2), "AdamW", "beta2", options.beta2, kBeta);
  require(training::positive_float(options.epsilon), "AdamW", "epsilon", options.epsilon,
          "a finite number above 0 in single precision");
  require(training::not_negative_float(options.weight_decay), "AdamW", "the weight decay",
          options.weight_decay, "a finite number, at least 0, in single precision");
}

AdamW::~AdamW() = default;

void AdamW::step(Gradient gradient_sum, double batch, const Rate& rate) {
  const double full = rate.base * std::sqrt(rate.gamma);
  training::check_step("AdamW", parameters_, gradient_sum, batch, full, rate.momentum_scale,
                       options_.weight_decay);
  const Betas betas = betas_of(options_, rate.gamma);
  if (rate.momentum_scale == 0) {
    std::ranges::fill(momentum_, 0.0F);  // 0 * NaN is no reset
    beta1_power_ = 1;
  }
  beta1_power_ *= betas.beta1;
  beta2_power_ *= betas.beta2;
  const auto share = static_cast<float>(1 / batch);
  const auto kept = static_cast<float>(betas.beta1 * std::sqrt(rate.momentum_scale));
  const auto added = static_cast<float>(1 - betas.beta1);
  const auto kept_squares = static_cast<float>(betas.beta2);
  const auto added_squares = static_cast<float>(1 - betas.beta2);
  const auto length = static_cast<float>(full / (1 - beta1_power_));
  const auto correction = static_cast<float>(1 / std::sqrt(1 - beta2_power_));
  const auto epsilon = static_cast<float>(betas.epsilon);
  const auto shrink = static_cast<float>(1 - full * options_.weight_decay);
  std::size_t offset = 0;
  for (std::size_t tensor = 0; tensor < parameters_.size(); ++tensor) {
    const auto w = parameters_[tensor];
    const auto sum = gradient_sum[tensor];
    const auto m = std::span(momentum_).subspan(offset, w.size());
    const auto v = std::span(variance_).subspan(offset, w.size());
    offset += w.size();
    for (std::size_t at = 0; at < w.size(); ++at) {
      const float g = share * sum[at];
      m[at] = kept * m[at] + added * g;
      v[at] = kept_squares * v[at] + added_squares * (g * g);
      w[at] = shrink * w[at] - length * (m[at] / (correction * std::sqrt(v[at]) + epsilon));
    }
  }
}

void AdamW::add_to(State& state, std::string_view name) {
  const std::string prefix(name);
  state.add(prefix + "/options", *same_options_);
  state.add(prefix + "/momentum", momentum_);
  state.add(prefix + "/variance", variance_);
  state.add(prefix + "/power of beta1", beta1_power_);
  state.add(prefix + "/power of beta2", beta2_power_);
}

}  // namespace elastic
