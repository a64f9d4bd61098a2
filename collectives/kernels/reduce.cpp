#include "collectives/kernels/reduce.hpp"

#include "collectives/kernels/scalar.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define ELASTIC_AVX2 [[gnu::target("avx2,f16c")]]
#endif

namespace elastic::kernels {
namespace {

struct Sum {
  static constexpr bool kCommutes = true;
  template <typename W>
  ELASTIC_KERNEL_INLINE static W apply(W a, W b) {
    if constexpr (std::is_integral_v<W>) {
      using U = std::make_unsigned_t<W>;
      return static_cast<W>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
#if defined(__x86_64__)
  ELASTIC_AVX2 static __m256 apply_eight(__m256 a, __m256 b) {
    return _mm256_add_ps(a, b);
  }
#endif
};

struct Product {
  static constexpr bool kCommutes = true;
  template <typename W>
  ELASTIC_KERNEL_INLINE static W apply(W a, W b) {
    if constexpr (std::is_integral_v<W>) {
      return static_cast<W>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
#if defined(__x86_64__)
  ELASTIC_AVX2 static __m256 apply_eight(__m256 a, __m256 b) {
    return _mm256_mul_ps(a, b);
  }
#endif
};

/// The first operand wins a tie. A NaN among the operands is the result.
struct Min {
  static constexpr bool kCommutes = false;
  template <typename W>
  ELASTIC_KERNEL_INLINE static W apply(W a, W b) {
    const W lesser = b < a ? b : a;  // a, if either is NaN
    return b == b ? lesser : b;
  }
#if defined(__x86_64__)
  ELASTIC_AVX2 static __m256 apply_eight(__m256 a, __m256 b) {
    return _mm256_blendv_ps(_mm256_min_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
  }
#endif
};

struct Max {
  static constexpr bool kCommutes = false;
  template <typename W>
  ELASTIC_KERNEL_INLINE static W apply(W a, W b) {
    const W greater = b > a ? b : a;
    return b == b ? greater : b;
  }
#if defined(__x86_64__)
  ELASTIC_AVX2 static __m256 apply_eight(__m256 a, __m256 b) {
    return _mm256_blendv_ps(_mm256_max_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
  }
#endif
};

template <typename T, typename Op, bool kFlipped>
ELASTIC_KERNEL_INLINE void loop(std::byte* into, const std::byte* from, std::size_t elements) {
  auto* const a = reinterpret_cast<Loose<Stored<T>>*>(into);
  const auto* const b = reinterpret_cast<const Loose<Stored<T>>*>(from);
#pragma GCC ivdep
  for (std::size_t i = 0; i < elements; ++i) {
    const Wide<T> x = widen<T>(a[i].value);
    const Wide<T> y = widen<T>(b[i].value);
    a[i].value = narrow<T>(kFlipped ? Op::apply(y, x) : Op::apply(x, y));
  }
}

template <typename T, typename Op, bool kFlipped>
void loop_baseline(std::byte* into, const std::byte* from, std::size_t elements) {
  loop<T, Op, kFlipped>(into, from, elements);
}

#if defined(__x86_64__)
template <typename T, typename Op, bool kFlipped>
ELASTIC_AVX2 void loop_avx2(std::byte* into, const std::byte* from, std::size_t elements) {
  loop<T, Op, kFlipped>(into, from, elements);
}

constexpr std::size_t kLanes = 8;

template <typename T>
ELASTIC_AVX2 inline __m256 load_eight(const std::byte* from) {
  const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if constexpr (std::is_same_v<T, float16>) return _mm256_cvtph_ps(stored);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(stored), 16));
}

/// `narrow`, eight at a time.
template <typename T>
ELASTIC_AVX2 inline void store_eight(std::byte* into, __m256 wide) {
  const __m256i ordered = _mm256_castps_si256(_mm256_cmp_ps(wide, wide, _CMP_ORD_Q));
  __m128i narrow;
  __m128i nan;
  if constexpr (std::is_same_v<T, float16>) {
    narrow = _mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT);
    nan = _mm_set1_epi16(0x7e00);
  } else {
    const __m256i word = _mm256_castps_si256(wide);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(word, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(word, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i high = _mm256_srli_epi32(up, 16);
    narrow = _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    nan = _mm_set1_epi16(0x7fc0);
  }
  const __m128i keep =
      _mm_packs_epi32(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(into), _mm_blendv_epi8(nan, narrow, keep));
}

/// The compiler does not vectorise the conversions of the 16-bit floats well: by hand.
template <typename T, typename Op, bool kFlipped>
ELASTIC_AVX2 void loop_half(std::byte* into, const std::byte* from, std::size_t elements) {
  std::size_t i = 0;
  for (; i + kLanes <= elements; i += kLanes) {
    const __m256 x = load_eight<T>(into + i * 2);
    const __m256 y = load_eight<T>(from + i * 2);
    store_eight<T>(into + i * 2, kFlipped ? Op::apply_eight(y, x) : Op::apply_eight(x, y));
  }
  loop<T, Op, kFlipped>(into + i * 2, from + i * 2, elements - i);
}
#endif

template <typename T, typename Op, bool kFlipped>
Function select(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) {
    if constexpr (kIsHalf<T>) {
      return loop_half<T, Op, kFlipped>;
    } else {
      return loop_avx2<T, Op, kFlipped>;
    }
  }
#endif
  (void)isa;
  return loop_baseline<T, Op, kFlipped>;
}

template <typename T, bool kFlipped>
Function select(ReduceOp op, Isa isa) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return select < T, Sum, kFlipped && !Sum::kCommutes > (isa);
    case ReduceOp::kMin:
      return select<T, Min, kFlipped>(isa);
    case ReduceOp::kMax:
      return select<T, Max, kFlipped>(isa);
    case ReduceOp::kProduct:
      return select < T, Product, kFlipped && !Product::kCommutes > (isa);
  }
  return nullptr;
}

template <bool kFlipped>
Function select(DType dtype, ReduceOp op, Isa isa) {
  switch (dtype) {
    case DType::kF16:
      return select<float16, kFlipped>(op, isa);
    case DType::kBF16:
      return select<bfloat16, kFlipped>(op, isa);
    case DType::kF32:
      return select<float, kFlipped>(op, isa);
    case DType::kF64:
      return select<double, kFlipped>(op, isa);
    case DType::kI8:
      return select<std::int8_t, kFlipped>(op, isa);
    case DType::kU8:
      return select<std::uint8_t, kFlipped>(op, isa);
    case DType::kI32:
      return select<std::int32_t, kFlipped>(op, isa);
    case DType::kI64:
      return select<std::int64_t, kFlipped>(op, isa);
  }
  return nullptr;
}

}  // namespace

Isa best_isa() {
#if defined(__x86_64__)
  static const Isa best = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")
                              ? Isa::kAvx2
                              : Isa::kBaseline;
  return best;
#else
  return Isa::kBaseline;
#endif
}

Function reduce(DType dtype, ReduceOp op, Isa isa) {
  return select<false>(dtype, op, isa);
}

Function reduce_flipped(DType dtype, ReduceOp op, Isa isa) {
  return select<true>(dtype, op, isa);
}

}  // namespace elastic::kernels
