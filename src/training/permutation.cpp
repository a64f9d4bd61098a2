#include "training/permutation.hpp"

#include <algorithm>
#include <bit>

#include "training/mix.hpp"

namespace elastic::training {
namespace {

/// With fewer bits the rounds have too few functions to choose from to reach all orders alike.
constexpr int kLeastBits = 6;

std::uint64_t ones(int bits) {
  return (std::uint64_t{1} << bits) - 1;
}

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch)
    : size_(size) {
  const int bits = std::max(kLeastBits, static_cast<int>(std::bit_width(size - 1)));
  low_bits_ = (bits + 1) / 2;
  low_mask_ = ones(low_bits_);
  high_mask_ = ones(bits - low_bits_);
  // Seed and epoch each pass through the mixer, so that (1, 2) and (2, 1) have nothing in common.
  std::uint64_t key = mix(mix(seed) + epoch);
  for (std::uint64_t& round : keys_) round = key = mix(key);
}

std::uint64_t Permutation::operator()(std::uint64_t position) const {
  std::uint64_t word = encrypt(position);
  while (word >= size_) word = encrypt(word);
  return word;
}

/// Each half in turn is changed by a function of the other, which the next round could undo.
std::uint64_t Permutation::encrypt(std::uint64_t word) const {
  std::uint64_t low = word & low_mask_;
  std::uint64_t high = word >> low_bits_;
  for (std::size_t round = 0; round < kRounds; round += 2) {
    high ^= mix(keys_[round] + low) & high_mask_;
    low ^= mix(keys_[round + 1] + high) & low_mask_;
  }
  return high << low_bits_ | low;
}

}  // namespace elastic::training
