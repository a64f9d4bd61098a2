#include "collectives/kernels/extreme.hpp"

#include <cstring>
#include <type_traits>

#include "collectives/kernels/element_type.hpp"

namespace elastic::kernels {
namespace {

template <typename T>
T element(const std::byte* data, std::size_t at) {
  T value;
  std::memcpy(&value, data + at * sizeof(T), sizeof(T));
  return value;
}

/// The number that a stored element is compared as.
template <typename T>
auto comparable(T value) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

/// Whether `left` is more extreme than `right`, and not equal to it.
template <Extreme kExtreme, typename Number>
bool comes_before(Number left, Number right) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (left != left || right != right) return left != left && right == right;  // NaN
  }
  return kExtreme == Extreme::kLeast ? left < right : left > right;
}

template <Extreme kExtreme, typename T>
void keep(const ValuesAndIndices& kept, const ConstValuesAndIndices& others, std::size_t elements) {
  for (std::size_t at = 0; at < elements; ++at) {
    const auto mine = comparable(element<T>(kept.values, at));
    const auto other = comparable(element<T>(others.values, at));
    if (comes_before<kExtreme>(mine, other)) continue;
    const auto index = element<std::int64_t>(others.indices, at);
    if (!comes_before<kExtreme>(other, mine) && index >= element<std::int64_t>(kept.indices, at)) {
      continue;
    }
    std::memcpy(kept.values + at * sizeof(T), others.values + at * sizeof(T), sizeof(T));
    std::memcpy(kept.indices + at * sizeof(index), &index, sizeof(index));
  }
}

}  // namespace

void keep_extremes(DType dtype, Extreme extreme, const ValuesAndIndices& kept,
                   const ConstValuesAndIndices& others, std::size_t elements) {
  with_element_of(dtype, [&]<typename T>(T) {
    if (extreme == Extreme::kLeast) {
      keep<Extreme::kLeast, T>(kept, others, elements);
    } else {
      keep<Extreme::kGreatest, T>(kept, others, elements);
    }
  });
}

}  // namespace elastic::kernels
