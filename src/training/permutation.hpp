#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elastic::training {

/// The order in which an epoch takes the samples 0 to size-1: a function of its arguments alone,
/// the same with every compiler and standard library. Any position can be asked for by itself, and
/// nothing is stored for the samples.
///
/// A Feistel network over the next power of two, walked until it comes back into the range (Black,
/// Rogaway 2002), less than twice on average.
class Permutation {
 public:
  /// `size` is at least 1.
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch);

  /// The sample at `position`, which is less than the size.
  std::uint64_t operator()(std::uint64_t position) const;

 private:
  static constexpr std::size_t kRounds = 8;

  std::uint64_t encrypt(std::uint64_t word) const;

  std::uint64_t size_;
  int low_bits_;
  std::uint64_t low_mask_;
  std::uint64_t high_mask_;
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace elastic::training
