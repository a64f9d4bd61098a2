#include "collectives/kernels/reduce.hpp"

#include <algorithm>

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
    if constexpr (std::is_same_v<W, std::int64_t>) {
      return multiply_int64(d, a, b);
    } else if constexpr (std::is_same_v<W, std::int16_t>) {  // of 8 bits each
      return hn::And(hn::Mul(a, b), hn::Set(d, 0xff));
    } else {
      return one_nan(d, hn::Mul(a, b));
    }
  }
};

/// Of floats, `chosen`, or the NaN if there is one among the operands.
template <class D>
HWY_INLINE hn::Vec<D> unless_nan(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> chosen) {
  const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(hn::And(hn::Eq(a, a), hn::Eq(b, b)), chosen, nan);
}

struct Min {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      return hn::Min(a, b);
    } else {
      return unless_nan(d, a, b, hn::IfThenElse(hn::Lt(b, a), b, a));
    }
  }
};

struct Max {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      return hn::Max(a, b);
    } else {
      return unless_nan(d, a, b, hn::IfThenElse(hn::Gt(b, a), b, a));
    }
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
  std::size_t done = 0;
  if constexpr (kStore == Store::kStreaming) {
    const std::size_t vector = hn::Lanes(full) * sizeof(T);
    const std::size_t before = bytes_to_multiple_of(vector, into);
    if (before % sizeof(T) != 0) {
      return combine<T, W, Op, Store::kCached>(into, left, right, elements);
    }
    const std::size_t head = std::min(before / sizeof(T), elements);
    done = combine_vectors<T, Op, Store::kCached>(one, into, left, right, 0, head);
  }
  done = combine_vectors<T, Op, kStore>(full, into, left, right, done, elements);
  combine_vectors<T, Op, Store::kCached>(one, into, left, right, done, elements);
  if constexpr (kStore == Store::kStreaming) hwy::FlushStream();
}

template <typename T, typename W, class Op>
Function loop(Store store) {
  return store == Store::kStreaming ? combine<T, W, Op, Store::kStreaming>
                                    : combine<T, W, Op, Store::kCached>;
}

template <typename T>
Function loop(ReduceOp op, Store store) {
  using W = std::conditional_t<kIsHalf<T>, float, T>;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return loop<T, W, Sum>(store);
    case ReduceOp::kMin:
      return loop<T, W, Min>(store);
    case ReduceOp::kMax:
      return loop<T, W, Max>(store);
    case ReduceOp::kProduct:
      break;
  }
  // The low byte of a product does not depend on the signs.
  if constexpr (sizeof(T) == 1) {
    return loop<std::uint8_t, std::int16_t, Product>(store);
  } else {
    return loop<T, W, Product>(store);
  }
}

}  // namespace

Function loop_of(DType dtype, ReduceOp op, Store store) {
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
