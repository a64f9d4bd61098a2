#pragma once

#include <cstdint>

namespace elastic::training {

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014), with its increment: every bit of the word
/// changes each bit of the result in half of all cases. A bijection.
constexpr std::uint64_t mix(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15U;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebU;
  return word ^ (word >> 31);
}

}  // namespace elastic::training
