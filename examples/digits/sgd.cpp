#include "examples/digits/sgd.hpp"

namespace digits {

void sgd_step(Parameters& weights, Parameters& momentum, const Parameters& gradient_sum,
              double batch, double mu, double rate) {
  const auto share = static_cast<float>(1 / batch);
  const auto kept = static_cast<float>(mu);
  const auto length = static_cast<float>(rate);
  const auto w = weights.values();
  const auto u = momentum.values();
  const auto g = gradient_sum.values();
  for (std::size_t at = 0; at < w.size(); ++at) {
    u[at] = kept * u[at] + share * g[at];
    w[at] -= length * u[at];
  }
}

double base_rate(double initial, double samples, double samples_in_all) {
  return samples * 3 < samples_in_all * 2 ? initial : initial / 10;
}

}  // namespace digits
