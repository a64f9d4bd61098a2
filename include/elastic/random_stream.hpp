#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "elastic/export.hpp"

namespace elastic {

/// Random numbers (Philox4x32-10) that are a function of a key and of how many were taken before:
/// for dropout and augmentation that come out the same on whichever worker computes a batch, as
/// often as it is computed. Streams of different keys are independent.
///
/// A std::uniform_random_bit_generator. The standard library's distributions differ from one
/// library to the next; `uniform` and `below` do not.
class ELASTIC_API RandomStream {
 public:
  struct Key {
    std::uint64_t seed = 0;
    std::uint64_t epoch = 0;
    std::uint64_t step = 0;            ///< anything that differs between the steps of an epoch
    std::uint32_t virtual_worker = 0;  ///< in that step
  };
  using result_type = std::uint32_t;  // NOLINT(readability-identifier-naming): the standard's

  explicit RandomStream(const Key& key);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  /// 32 random bits. A stream repeats itself after 2^34 of them.
  result_type operator()();

  /// Uniform in [0, 1), in steps of 2^-53.
  double uniform();
  /// Uniform among the whole numbers below `bound`. Throws Error(kInvalidArgument) where it is 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t word();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_;  // words of the block
};

}  // namespace elastic
