#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "elastic/state.hpp"

namespace elastic::fuzz {

/// A state with an entry of every kind: a large one, a small one, a number, and two objects, of
/// which each refuses some contents.
class FuzzState {
 public:
  FuzzState() {
    state_.add("large", large_);
    state_.add("small", small_);
    state_.add("number", number_);
    state_.add("first", first_);
    state_.add("second", second_);
  }

  State& state() { return state_; }

  /// Everything but the number of commits.
  struct Contents {
    std::vector<float> large;
    std::vector<std::uint64_t> small;  ///< The bits, since a NaN is not equal to itself.
    std::int64_t number = 0;
    std::vector<std::byte> first;
    std::vector<std::byte> second;
    bool operator==(const Contents&) const = default;
  };
  Contents contents() const { return {large_, bits(small_), number_, first_.bytes, second_.bytes}; }

 private:
  static std::vector<std::uint64_t> bits(const std::vector<double>& numbers) {
    std::vector<std::uint64_t> words(numbers.size());
    std::transform(numbers.begin(), numbers.end(), words.begin(),
                   [](double number) { return std::bit_cast<std::uint64_t>(number); });
    return words;
  }

  struct Object {
    std::vector<std::byte> bytes;
    std::vector<std::byte> save() const { return bytes; }
    void load(std::span<const std::byte> from) {
      if (!from.empty() && from.front() == std::byte{0xff}) throw std::runtime_error("refused");
      bytes.assign(from.begin(), from.end());
    }
  };

  std::vector<float> large_ = std::vector<float>(20000, 1.0F);
  std::vector<double> small_ = std::vector<double>(5, 2.0);
  std::int64_t number_ = 3;
  Object first_{{std::byte{1}, std::byte{2}}};
  Object second_{{}};
  State state_;
};

}  // namespace elastic::fuzz
