// Included once for each instruction set, by sources that Highway compiles for several.
#if defined(ELASTIC_KERNELS_ELEMENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ELASTIC_KERNELS_ELEMENTS_INL
#undef ELASTIC_KERNELS_ELEMENTS_INL
#else
#define ELASTIC_KERNELS_ELEMENTS_INL
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "collectives/kernels/store.hpp"
#include "elastic/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace elastic::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// The stored type of T: the bits, for the 16-bit floats.
template <typename T>
using Stored = std::conditional_t<kIsHalf<T>, std::uint16_t, T>;

/// The vector of elements of type T that has as many as D has lanes.
template <typename T, class D>
using StoredTag = hn::Rebind<Stored<T>, D>;

#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64
template <class D, class V>
HWY_INLINE hn::Vec<D> widen_float16(D d, V bits) {
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
}

template <class D>
HWY_INLINE hn::Vec<StoredTag<float16, D>> to_float16(D /*d*/, hn::Vec<D> wide) {
  return hn::BitCast(StoredTag<float16, D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), wide));
}
#else
// Without instructions for it Highway takes subnormal values for 0.
template <class D, class V>
HWY_INLINE hn::Vec<D> widen_float16(D d, V bits) {
  std::array<std::uint16_t, hn::MaxLanes(d)> halves;
  std::array<float, halves.size()> wide;
  hn::StoreU(bits, StoredTag<float16, D>(), halves.data());
  for (std::size_t i = 0; i < wide.size(); ++i) {
    wide[i] = static_cast<float>(std::bit_cast<float16>(halves[i]));
  }
  return hn::LoadU(d, wide.data());
}

template <class D>
HWY_INLINE hn::Vec<StoredTag<float16, D>> to_float16(D d, hn::Vec<D> values) {
  std::array<float, hn::MaxLanes(d)> wide;
  std::array<std::uint16_t, wide.size()> halves;
  hn::StoreU(values, d, wide.data());
  for (std::size_t i = 0; i < wide.size(); ++i) halves[i] = float16(wide[i]).bits;
  return hn::LoadU(StoredTag<float16, D>(), halves.data());
}
#endif

template <class D, class V>
HWY_INLINE hn::Vec<D> widen_bfloat16(D d, V bits) {
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), bits)));
}

/// The upper half of each word is the nearest bfloat16, that with an even last bit of two. There is
/// no NaN in `wide` but that of `one_nan`.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, D>> rounded_to_upper_half(D /*d*/, hn::Vec<D> wide) {
  const hn::Rebind<std::uint32_t, D> words;
  const auto word = hn::BitCast(words, wide);
  const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(words, 1));
  return hn::Add(hn::Add(word, hn::Set(words, 0x7fff)), odd);
}

template <class D>
HWY_INLINE hn::Vec<StoredTag<bfloat16, D>> to_bfloat16(D d, hn::Vec<D> wide) {
  const auto bits = hn::ShiftRight<16>(rounded_to_upper_half(d, wide));
  return hn::DemoteTo(StoredTag<bfloat16, D>(), hn::BitCast(hn::Rebind<std::int32_t, D>(), bits));
}

/// Loads a vector of elements of type T, from any address, as what D computes in.
template <typename T, class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
  const StoredTag<T, D> tag;
  const auto stored = hn::LoadU(tag, reinterpret_cast<const Stored<T>*>(from));
  if constexpr (std::is_same_v<T, float16>) {
    return widen_float16(d, stored);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return widen_bfloat16(d, stored);
  } else if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return stored;
  } else if constexpr (std::is_same_v<hn::TFromD<D>, float>) {
    return hn::ConvertTo(d, hn::PromoteTo(hn::Rebind<std::int32_t, D>(), stored));
  } else {
    return hn::PromoteTo(d, stored);
  }
}

/// Stores what `load` loads; integers computed in floats are truncated towards zero. Streamed to an
/// address that is a multiple of the vector's size, otherwise to any.
template <typename T, Store kStore = Store::kTemporal, class D>
HWY_INLINE void store(D d, hn::Vec<D> wide, std::byte* into) {
  const StoredTag<T, D> tag;
  hn::Vec<StoredTag<T, D>> stored;
  if constexpr (std::is_same_v<T, float16>) {
    stored = to_float16(d, wide);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    stored = to_bfloat16(d, wide);
  } else if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    stored = wide;
  } else if constexpr (std::is_same_v<hn::TFromD<D>, float>) {
    stored = hn::DemoteTo(tag, hn::ConvertTo(hn::Rebind<std::int32_t, D>(), wide));
  } else {
    stored = hn::DemoteTo(tag, wide);
  }
  auto* const at = reinterpret_cast<Stored<T>*>(into);
  // Highway streams no fewer bytes.
  if constexpr (kStore == Store::kNonTemporal && hn::MaxLanes(tag) * sizeof(T) >= 16) {
    hn::Stream(stored, tag, at);
  } else {
    hn::StoreU(stored, tag, at);
  }
}

/// How far `at` is from the next multiple of `size`, a power of two.
HWY_INLINE std::size_t bytes_to_multiple_of(std::size_t size, const std::byte* at) {
  return (size - reinterpret_cast<std::uintptr_t>(at) % size) % size;
}

/// Makes every NaN the quiet one that is positive and without payload.
template <class D>
HWY_INLINE hn::Vec<D> one_nan(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_floating_point_v<T>) {
    return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), v);
  } else {
    return v;
  }
}

}  // namespace elastic::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ELASTIC_KERNELS_ELEMENTS_INL
