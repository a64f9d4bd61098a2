#include "training/fixed_point.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "training/elements.hpp"

namespace elastic::training {
namespace {

/// The bits of a summand: so many that it can be rounded by an addition of doubles.
constexpr int kSummandBits = 50;
constexpr int kSumBits = 62;

template <typename T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;

/// 2^exponent in two factors, because one is out of range where numbers are very small.
struct Scale {
  explicit Scale(int exponent)
      : first(std::ldexp(1.0, exponent / 2)), second(std::ldexp(1.0, exponent - exponent / 2)) {}
  double apply(double value) const { return value * first * second; }

  double first;
  double second;
};

/// Calls `use` where the elements are real numbers; others are refused before it comes to this.
template <typename View, typename Use>
void with_reals(const View& tensor, Use use) {
  with_elements(tensor, [&]<typename T>(std::span<T> elements) {
    if constexpr (kIsReal<std::remove_const_t<T>>) use(elements);
  });
}

}  // namespace

double magnitude(const ConstTensorView& tensor) {
  double greatest = 0;
  with_reals(tensor, [&]<typename T>(std::span<const T> elements) {
    // Without their sign numbers are ordered as their bits are, and infinity and NaN are above all.
    constexpr Bits<T> kNoSign = std::numeric_limits<Bits<T>>::max() >> 1;
    Bits<T> bits = 0;
    for (const T element : elements) {
      bits = std::max(bits, static_cast<Bits<T>>(std::bit_cast<Bits<T>>(element) & kNoSign));
    }
    greatest = widened(std::bit_cast<T>(bits));
  });
  return std::isfinite(greatest) ? greatest : std::numeric_limits<double>::infinity();
}

int fixed_exponent(double magnitude, std::size_t summands) {
  if (magnitude == 0) return 0;
  int above = 0;  // magnitude < 2^above
  (void)std::frexp(magnitude, &above);
  const int bits_of_all = static_cast<int>(std::bit_width(summands - 1));
  return std::min(kSummandBits, kSumBits - bits_of_all) - above;
}

void add_fixed(const ConstTensorView& tensor, int exponent, std::span<std::int64_t> sums) {
  // A number of up to 2^51 is rounded when this is added to it, and lies in the low bits then:
  // twice as quick as a conversion.
  constexpr double kShift = 0x1.8p52;
  constexpr auto kShiftBits = std::bit_cast<std::int64_t>(kShift);
  const Scale scale(exponent);
  with_reals(tensor, [&]<typename T>(std::span<const T> elements) {
    for (std::size_t at = 0; at < elements.size(); ++at) {
      const double shifted = scale.apply(widened(elements[at])) + kShift;
      sums[at] += std::bit_cast<std::int64_t>(shifted) - kShiftBits;
    }
  });
}

void from_fixed(std::span<const std::int64_t> sums, int exponent, const TensorView& tensor) {
  const Scale scale(-exponent);
  with_reals(tensor, [&]<typename T>(std::span<T> elements) {
    for (std::size_t at = 0; at < elements.size(); ++at) {
      elements[at] = rounded_to<T>(scale.apply(static_cast<double>(sums[at])));
    }
  });
}

void set_to_nan(const TensorView& tensor) {
  with_reals(tensor, [&]<typename T>(std::span<T> elements) {
    std::fill(elements.begin(), elements.end(),
              rounded_to<T>(std::numeric_limits<double>::quiet_NaN()));
  });
}

}  // namespace elastic::training
