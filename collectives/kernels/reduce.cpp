#include "collectives/kernels/reduce.hpp"

#include <algorithm>
#include <bit>

#include "collectives/kernels/element_type.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/kernels/reduce.cpp"
#include <hwy/foreach_target.h>

#include "collectives/kernels/elements_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace elastic::kernels::HWY_NAMESPACE {
namespace {

struct Sum {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    return one_nan(d, hn::Add(a, b));
  }
};

#if HWY_TARGET == HWY_SCALAR
template <class D>
HWY_INLINE hn::Vec<D> multiply_int64(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
  return hn::Mul(a, b);
}
#else
/// Highway before 1.0.4 has no product of 64 bits.
template <class D>
HWY_INLINE hn::Vec<D> multiply_int64(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const hn::Repartition<std::uint32_t, D> halves;
  const hn::Repartition<std::uint64_t, D> wholes;
  const auto high = [&](hn::Vec<D> v) HWY_ATTR {
    return hn::BitCast(halves, hn::ShiftRight<32>(hn::BitCast(wholes, v)));
  };
  const auto low_a = hn::BitCast(halves, a);
  const auto low_b = hn::BitCast(halves, b);
  const auto cross = hn::Add(hn::MulEven(low_a, high(b)), hn::MulEven(high(a), low_b));
  return hn::BitCast(d, hn::Add(hn::MulEven(low_a, low_b), hn::ShiftLeft<32>(cross)));
}
#endif

struct Product {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    using W = hn::TFromD<D>;
    if constexpr (std::is_integral_v<W> && sizeof(W) == 8) {
      return multiply_int64(d, a, b);
    } else {
      return one_nan(d, hn::Mul(a, b));
    }
  }
};

/// Integers of 8 bits are multiplied in 16.
struct ProductOfBytes {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::And(hn::Mul(a, b), hn::Set(d, 0xff));
  }
};

/// Sum or product of bfloat16, by their bits: two lie in a word, and to widen and to round them
/// there takes half of what it takes one by one.
template <class Op>
struct InPairs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hn::MaxLanes(d) == 1) {
      const hn::Rebind<float, D> one;
      return to_bfloat16(one, Op::apply(one, widen_bfloat16(one, a), widen_bfloat16(one, b)));
    } else {
      const hn::Repartition<float, D> floats;
      const hn::Repartition<std::uint32_t, D> words;
      const auto upper = hn::Set(words, 0xffff0000);
      const auto word_a = hn::BitCast(words, a);
      const auto word_b = hn::BitCast(words, b);
      const auto lower_result = Op::apply(floats, hn::BitCast(floats, hn::ShiftLeft<16>(word_a)),
                                          hn::BitCast(floats, hn::ShiftLeft<16>(word_b)));
      const auto upper_result = Op::apply(floats, hn::BitCast(floats, hn::And(word_a, upper)),
                                          hn::BitCast(floats, hn::And(word_b, upper)));
      return hn::BitCast(d, hn::Or(hn::ShiftRight<16>(rounded_to_upper_half(floats, lower_result)),
                                   hn::And(rounded_to_upper_half(floats, upper_result), upper)));
    }
  }
};

/// The minimum (`b` if it is below `a`), or the maximum, of numbers or of the keys of such.
template <bool kGreatest, class V>
HWY_INLINE V extreme(V a, V b, V key_a, V key_b) {
  return hn::IfThenElse(kGreatest ? hn::Gt(key_b, key_a) : hn::Lt(key_b, key_a), b, a);
}

template <bool kGreatest>
struct Extreme {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      return kGreatest ? hn::Max(a, b) : hn::Min(a, b);
    } else {
      const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
      const auto numbers = hn::And(hn::Eq(a, a), hn::Eq(b, b));
      return hn::IfThenElse(numbers, extreme<kGreatest>(a, b, a, b), nan);
    }
  }
};

/// The extreme of 16-bit floats of type T, by their bits: nothing is to be rounded.
template <typename T, bool kGreatest>
struct ExtremeOfBits {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    constexpr auto kInfinity = T(std::numeric_limits<float>::infinity()).bits;
    constexpr auto kNan = T(std::numeric_limits<float>::quiet_NaN()).bits;
    const auto infinity = hn::Set(d, static_cast<std::int16_t>(kInfinity));
    const auto magnitude_a = hn::And(a, hn::Set(d, 0x7fff));
    const auto magnitude_b = hn::And(b, hn::Set(d, 0x7fff));
    const auto nan = hn::Or(hn::Gt(magnitude_a, infinity), hn::Gt(magnitude_b, infinity));
    const auto chosen =
        extreme<kGreatest>(a, b, with_sign_of(a, magnitude_a), with_sign_of(b, magnitude_b));
    return hn::IfThenElse(nan, hn::Set(d, static_cast<std::int16_t>(kNan)), chosen);
  }

 private:
  template <class V>
  static HWY_INLINE V with_sign_of(V v, V magnitude) {
    const V sign = hn::BroadcastSignBit(v);
    return hn::Sub(hn::Xor(magnitude, sign), sign);
  }
};

struct BitAnd {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::And(a, b);
  }
};
struct BitOr {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Or(a, b);
  }
};
struct BitXor {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Xor(a, b);
  }
};

/// `BitOp` on whether elements of type T, by their bits, are not 0. Every NaN is true, and -0.0 is
/// false.
template <typename T, class BitOp>
struct Logical {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    using Bits = hn::TFromD<D>;
    // All bits, as a mask has them.
    const auto truth = BitOp::apply(d, truth_of(d, a), truth_of(d, b));
    return hn::And(truth, hn::Set(d, one<Bits>()));
  }

 private:
  template <typename Bits>
  static constexpr Bits one() {
    if constexpr (kIsHalf<T>) {
      return T(1.0F).bits;
    } else {
      return std::bit_cast<Bits>(T{1});
    }
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> truth_of(D d, hn::Vec<D> v) {
    using Bits = hn::TFromD<D>;
    constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    constexpr bool kIsFloat = kIsHalf<T> || std::is_floating_point_v<T>;
    const auto magnitude = kIsFloat ? hn::AndNot(hn::Set(d, kSign), v) : v;
    return hn::Not(hn::VecFromMask(d, hn::Eq(magnitude, hn::Zero(d))));
  }
};

/// Combines whole vectors of D, from element `begin` on; returns where less than one is left.
template <typename T, class Op, Store kStore, class D>
HWY_INLINE std::size_t combine_vectors(D d, std::byte* into, const std::byte* left,
                                       const std::byte* right, std::size_t begin, std::size_t end) {
  const std::size_t lanes = hn::Lanes(d);
  for (; end - begin >= lanes; begin += lanes) {
    const std::size_t at = begin * sizeof(T);
    const auto a = load<T>(d, left + at);
    const auto b = load<T>(d, right + at);
    store<T, kStore>(d, Op::apply(d, a, b), into + at);
  }
  return begin;
}

/// Elements of type T, computed as W.
template <typename T, typename W, class Op, Store kStore>
void combine(std::byte* into, const std::byte* left, const std::byte* right, std::size_t elements) {
  const hn::ScalableTag<W> full;
  const hn::CappedTag<W, 1> one;
  const std::size_t before = bytes_to_multiple_of(hn::Lanes(full) * sizeof(T), into);
  const bool can_be_aligned = before % sizeof(T) == 0;
  if (kStore == Store::kNonTemporal && !can_be_aligned) {
    return combine<T, W, Op, Store::kTemporal>(into, left, right, elements);
  }
  std::size_t done = 0;
  // Vectors that do not lie across lines of the cache take less time, if there are enough of them.
  if (can_be_aligned && (kStore == Store::kNonTemporal || elements >= 32 * hn::Lanes(full))) {
    const std::size_t head = std::min(before / sizeof(T), elements);
    done = combine_vectors<T, Op, Store::kTemporal>(one, into, left, right, 0, head);
  }
  done = combine_vectors<T, Op, kStore>(full, into, left, right, done, elements);
  combine_vectors<T, Op, Store::kTemporal>(one, into, left, right, done, elements);
  if constexpr (kStore == Store::kNonTemporal) hwy::FlushStream();
}

template <typename T, typename W, class Op>
Function loop(Store store) {
  return store == Store::kNonTemporal ? combine<T, W, Op, Store::kNonTemporal>
                                      : combine<T, W, Op, Store::kTemporal>;
}

template <typename T, bool kGreatest>
Function extreme_loop(Store store) {
  if constexpr (kIsHalf<T>) {
    return loop<std::int16_t, std::int16_t, ExtremeOfBits<T, kGreatest>>(store);
  } else {
    return loop<T, T, Extreme<kGreatest>>(store);
  }
}

template <typename T, class Op>
Function arithmetic_loop(Store store) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return loop<std::uint16_t, std::uint16_t, InPairs<Op>>(store);
  } else if constexpr (std::is_same_v<T, float16>) {
    return loop<T, float, Op>(store);
  } else if constexpr (sizeof(T) == 1 && std::is_same_v<Op, Product>) {
    // The low byte of a product does not depend on the signs.
    return loop<std::uint8_t, std::int16_t, ProductOfBytes>(store);
  } else {
    return loop<T, T, Op>(store);
  }
}

template <std::size_t kBytes>
using Unsigned = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t,
                       std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

template <typename T, class Op>
Function loop_of_bits(Store store) {
  return loop<Unsigned<sizeof(T)>, Unsigned<sizeof(T)>, Op>(store);
}

template <typename T>
Function loop(ReduceOp op, Store store) {
  switch (op) {
    case ReduceOp::kMin:
      return extreme_loop<T, false>(store);
    case ReduceOp::kMax:
      return extreme_loop<T, true>(store);
    case ReduceOp::kProduct:
      return arithmetic_loop<T, Product>(store);
    case ReduceOp::kBitAnd:
      return loop_of_bits<T, BitAnd>(store);
    case ReduceOp::kBitOr:
      return loop_of_bits<T, BitOr>(store);
    case ReduceOp::kBitXor:
      return loop_of_bits<T, BitXor>(store);
    case ReduceOp::kLogicalAnd:
      return loop_of_bits<T, Logical<T, BitAnd>>(store);
    case ReduceOp::kLogicalOr:
      return loop_of_bits<T, Logical<T, BitOr>>(store);
    case ReduceOp::kLogicalXor:
      return loop_of_bits<T, Logical<T, BitXor>>(store);
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
    case ReduceOp::kAdasum:
    case ReduceOp::kHierarchicalAdasum:
      break;
  }
  return arithmetic_loop<T, Sum>(store);
}

/// "And" is the least of bytes that are 0 or 1, and "or" the greatest.
Function loop_of_bools(ReduceOp op, Store store) {
  switch (op) {
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd:
    case ReduceOp::kLogicalAnd:
      return extreme_loop<std::uint8_t, false>(store);
    case ReduceOp::kBitXor:
    case ReduceOp::kLogicalXor:
      return loop_of_bits<std::uint8_t, BitXor>(store);
    default:
      return extreme_loop<std::uint8_t, true>(store);
  }
}

}  // namespace

Function loop_of(DType dtype, ReduceOp op, Store store) {
  if (dtype == DType::kBool) return loop_of_bools(op, store);
  return with_element_of(dtype, [&](auto element) { return loop<decltype(element)>(op, store); });
}

}  // namespace elastic::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elastic::kernels {

HWY_EXPORT(loop_of);

Function reduce(DType dtype, ReduceOp op, Store store) {
  return HWY_DYNAMIC_DISPATCH(loop_of)(dtype, op, store);
}

}  // namespace elastic::kernels
#endif
