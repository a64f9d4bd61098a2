#include "training/portable_math.hpp"

#include <cmath>
#include <numbers>

namespace elastic::training {
namespace {

using std::numbers::ln2;
using std::numbers::pi;

// Each series ends where its next term is below the rounding error.

/// For 0 <= x <= pi/4.
double sine(double x) {
  double sum = 1;
  for (int n = 16; n > 0; n -= 2) sum = 1 - x * x / (n * (n + 1)) * sum;
  return x * sum;
}

/// For x > 0: of a number near 1 by the series of the inverse hyperbolic tangent.
double logarithm(double x) {
  int exponent = 0;
  double part = std::frexp(x, &exponent);
  if (part < std::numbers::sqrt2 / 2) {
    part *= 2;
    --exponent;
  }
  const double z = (part - 1) / (part + 1);
  double sum = 0;
  for (int n = 21; n > 0; n -= 2) sum = sum * (z * z) + 1.0 / n;
  return exponent * ln2 + 2 * z * sum;
}

/// For x <= 0.
double exponential(double x) {
  constexpr double kUnderflow = -745;
  if (x < kUnderflow) return 0;
  const double doublings = std::floor(x / ln2 + 0.5);
  const double rest = x - doublings * ln2;
  double sum = 1;
  for (int n = 14; n > 0; --n) sum = 1 + rest / n * sum;
  return std::ldexp(sum, static_cast<int>(doublings));
}

}  // namespace

double half_cosine(double part) {
  const double s = sine(pi / 2 * (part < 0.5 ? part : 1 - part));
  return part < 0.5 ? 1 - s * s : s * s;
}

double power(double base, double exponent) {
  return base > 0 ? exponential(exponent * logarithm(base)) : 0;
}

}  // namespace elastic::training
