#include "elastic/gradient_noise.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "elastic/error.hpp"
#include "training/arguments.hpp"
#include "training/bytes.hpp"

namespace elastic {
namespace {

using training::not_negative;
using training::require;

/// Steps of the reference batch that the averages reach back, as in the paper.
constexpr double kMemory = 1000;

double square(float value) {
  return double{value} * double{value};
}

double squared_norm(std::span<const float> values) {
  std::array<double, 8> sums{};  // several, so that one addition need not wait for another
  const std::size_t whole = values.size() - values.size() % sums.size();
  for (std::size_t at = 0; at < whole; at += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += square(values[at + lane]);
  }
  for (std::size_t at = whole; at < values.size(); ++at) sums[at - whole] += square(values[at]);
  double sum = 0;
  for (const double one : sums) sum += one;
  return sum;
}

double squared_norm(Gradient gradient) {
  double sum = 0;
  for (const auto tensor : gradient) sum += squared_norm(tensor);
  return sum;
}

}  // namespace

GradientNoise::Moments GradientNoise::moments(Gradient gradient_sum, double samples) {
  require(not_negative(samples), "GradientNoise", "the number of samples of this worker", samples,
          "a finite number, at least 0");
  if (samples == 0) return {};
  return {samples, 1, squared_norm(gradient_sum) / samples};
}

void GradientNoise::observe(const Moments& total, Gradient gradient_sum, double batch_reference) {
  require(training::positive(batch_reference), "GradientNoise", "the reference batch",
          batch_reference, "a positive number of samples");
  const auto [samples, workers, squares] = total;
  const double least = *std::min_element(total.begin(), total.end());
  require(!(least < 0), "GradientNoise", "a sum of the workers' moments", least,
          "what an allreduce made of GradientNoise::moments");
  if (workers < 2 || !(samples > 0)) return;
  // For n samples over N workers with n_i each, and gradient sums G_i: sum(|G_i|^2 / n_i) is
  // n*mu^2 + N*V on average, and |sum(G_i) / n|^2 is mu^2 + V/n.
  const double mean_square = squared_norm(gradient_sum) / (samples * samples);
  const double variance = std::max((squares - samples * mean_square) / (workers - 1), 0.0);
  const double square = std::max(mean_square - variance / samples, 0.0);
  if (!std::isfinite(variance) || !std::isfinite(square)) return;
  ++estimates_;
  const double weight =
      std::clamp(samples / batch_reference / kMemory, 1 / static_cast<double>(estimates_), 1.0);
  variance_ += weight * (variance - variance_);
  square_ += weight * (square - square_);
}

double GradientNoise::gain(double scale, double batch_reference) const {
  const double of_one = variance_ / batch_reference + square_;
  const double of_all = variance_ / (scale * batch_reference) + square_;
  if (!(of_all > 0)) return std::min(1.0, scale);
  return std::clamp(of_one / of_all, std::min(1.0, scale), std::max(1.0, scale));
}

std::vector<std::byte> GradientNoise::save() const {
  std::vector<std::byte> bytes;
  training::put(bytes, variance_);
  training::put(bytes, square_);
  training::put(bytes, estimates_);
  return bytes;
}

void GradientNoise::load(std::span<const std::byte> bytes) {
  GradientNoise loaded;
  training::ByteReader reader(bytes);
  const bool whole = reader.take(loaded.variance_) && reader.take(loaded.square_) &&
                     reader.take(loaded.estimates_) && reader.left() == 0;
  if (!whole || !not_negative(loaded.variance_) || !not_negative(loaded.square_)) {
    throw Error(ErrorCode::kInvalidArgument,
                "GradientNoise: " + std::to_string(bytes.size()) + " bytes are not saved averages");
  }
  *this = loaded;
}

}  // namespace elastic
