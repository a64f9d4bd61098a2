#include "collectives/kernels/finite.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace elastic::kernels {
namespace {

/// So many elements are looked at together, without a branch for each.
constexpr std::size_t kBlock = 1024;

/// A number of `Bits` is not finite where all bits of its exponent are set.
template <typename Bits, Bits kExponent>
bool any_not_finite(const std::byte* data, std::size_t count) {
  Bits found = 0;
  for (std::size_t at = 0; at < count; ++at) {
    Bits bits = 0;
    std::memcpy(&bits, data + at * sizeof(Bits), sizeof(Bits));
    found |= static_cast<Bits>((bits & kExponent) == kExponent ? 1 : 0);
  }
  return found != 0;
}

template <typename Bits, Bits kExponent>
std::size_t first(const void* data, std::size_t count) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, count);
    if (!any_not_finite<Bits, kExponent>(bytes + begin * sizeof(Bits), end - begin)) continue;
    while (!any_not_finite<Bits, kExponent>(bytes + begin * sizeof(Bits), 1)) ++begin;
    return begin;
  }
  return count;
}

}  // namespace

std::size_t first_not_finite(DType dtype, const void* data, std::size_t count) {
  switch (dtype) {
    case DType::kF16:
      return first<std::uint16_t, 0x7c00U>(data, count);
    case DType::kBF16:
      return first<std::uint16_t, 0x7f80U>(data, count);
    case DType::kF32:
      return first<std::uint32_t, 0x7f800000U>(data, count);
    case DType::kF64:
      return first<std::uint64_t, 0x7ff0000000000000U>(data, count);
    default:  // integers and bools
      break;
  }
  return count;
}

}  // namespace elastic::kernels
