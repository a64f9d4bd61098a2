// How the threads of a block move a chunk.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "collectives/kernels/device/pack_chunk.hpp"

namespace elastic::kernels::device {

inline constexpr std::uint32_t kThreads = 256;
/// Accesses that a thread has under way at once.
inline constexpr std::uint32_t kUnrolled = 4;

/// Bytes are copied as they are.
struct Copy {
  __device__ std::uint8_t operator()(std::uint8_t byte) const { return byte; }
};

template <std::uint32_t kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = std::uint8_t;
};
template <>
struct WordOf<2> {
  using Type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using Type = std::uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};

/// The unit that is read or written at once.
template <typename T, std::uint32_t kLanes>
using Word = typename WordOf<sizeof(T) * kLanes>::Type;

template <typename From, typename To, std::uint32_t kLanes, class Convert>
__device__ Word<To, kLanes> converted(const Word<From, kLanes>& word, const Convert& convert) {
  if constexpr (std::is_same_v<Convert, Copy>) {
    return word;
  } else {
    From from[kLanes];
    To to[kLanes];
    std::memcpy(from, &word, sizeof(from));
#pragma unroll
    for (std::uint32_t i = 0; i < kLanes; ++i) to[i] = convert(from[i]);
    Word<To, kLanes> result;
    std::memcpy(&result, to, sizeof(to));
    return result;
  }
}

/// Element `index` of those at `address`. It is in global memory, as the compiler sees of the
/// conversion: without it every access would have to find out.
template <typename T>
__device__ T& element_at(std::uint64_t address, std::uint32_t index) {
  return static_cast<T*>(__cvta_global_to_generic(address))[index];
}

/// The few in front of accesses and behind them.
template <typename From, typename To, class Convert>
__device__ void move_each(std::uint64_t from, std::uint64_t to, std::uint32_t elements,
                          const Convert& convert) {
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < elements; i += kThreads) {
    element_at<To>(to, i) = convert(element_at<const From>(from, i));
  }
}

/// Accesses of kLanes elements. Neighbouring threads have neighbouring ones; each has read several
/// before it writes the first.
template <typename From, typename To, std::uint32_t kLanes, class Convert>
__device__ void move_accesses(std::uint64_t from, std::uint64_t to, std::uint32_t accesses,
                              const Convert& convert) {
  using FromWord = Word<From, kLanes>;
  using ToWord = Word<To, kLanes>;
  std::uint32_t i = threadIdx.x;
#pragma unroll 1
  for (; i + (kUnrolled - 1) * kThreads < accesses; i += kUnrolled * kThreads) {
    FromWord words[kUnrolled];
#pragma unroll
    for (std::uint32_t n = 0; n < kUnrolled; ++n) {
      words[n] = element_at<const FromWord>(from, i + n * kThreads);
    }
#pragma unroll
    for (std::uint32_t n = 0; n < kUnrolled; ++n) {
      element_at<ToWord>(to, i + n * kThreads) = converted<From, To, kLanes>(words[n], convert);
    }
  }
#pragma unroll 1
  for (; i < accesses; i += kThreads) {
    element_at<ToWord>(to, i) =
        converted<From, To, kLanes>(element_at<const FromWord>(from, i), convert);
  }
}

/// `lanes` is kLanes or a smaller power of two.
template <typename From, typename To, std::uint32_t kLanes, class Convert>
__device__ void move_accesses_of(std::uint32_t lanes, std::uint64_t from, std::uint64_t to,
                                 std::uint32_t accesses, const Convert& convert) {
  if (lanes == kLanes) {
    move_accesses<From, To, kLanes>(from, to, accesses, convert);
  } else if constexpr (kLanes > 1) {
    move_accesses_of<From, To, kLanes / 2>(lanes, from, to, accesses, convert);
  }
}

/// Elements at addresses that are no multiples of their size.
template <typename From, typename To, class Convert>
__device__ void move_bytewise(std::uint64_t from, std::uint64_t to, std::uint32_t elements,
                              const Convert& convert) {
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < elements; i += kThreads) {
    std::uint8_t bytes[sizeof(From)];
#pragma unroll
    for (std::uint32_t n = 0; n < sizeof(From); ++n) {
      bytes[n] = element_at<const std::uint8_t>(from + i * sizeof(From), n);
    }
    From element;
    std::memcpy(&element, bytes, sizeof(element));
    const To result = convert(element);
    std::uint8_t result_bytes[sizeof(To)];
    std::memcpy(result_bytes, &result, sizeof(result));
#pragma unroll
    for (std::uint32_t n = 0; n < sizeof(To); ++n) {
      element_at<std::uint8_t>(to + i * sizeof(To), n) = result_bytes[n];
    }
  }
}

/// `chunk` of a range that begins at `from` and goes to `to`; called by all threads of a block.
template <typename From, typename To, class Convert>
__device__ void move_chunk(std::uint64_t from, std::uint64_t to, Chunk chunk, Access access,
                           const Convert& convert) {
  constexpr std::uint32_t kMostLanes =
      kAccessBytes / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  const ChunkParts parts = parts_of(chunk, access);
  from += chunk.begin * sizeof(From);
  to += chunk.begin * sizeof(To);
  if (access.lanes == 0) {
    move_bytewise<From, To>(from, to, parts.tail, convert);
    return;
  }
  move_each<From, To>(from, to, parts.head, convert);
  from += parts.head * sizeof(From);
  to += parts.head * sizeof(To);
  move_accesses_of<From, To, kMostLanes>(access.lanes, from, to, parts.accesses, convert);
  const std::uint32_t moved = parts.accesses * access.lanes;
  move_each<From, To>(from + moved * sizeof(From), to + moved * sizeof(To), parts.tail, convert);
}

}  // namespace elastic::kernels::device
