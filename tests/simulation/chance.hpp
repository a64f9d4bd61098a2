#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "base/clock.hpp"

namespace elastic::simulation {

/// The only source of randomness of a run. Own arithmetic on the generator's bits, because the
/// standard distributions differ between libraries, and a seed is to mean one run everywhere.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : bits_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return bits_() % bound; }
  bool percent(unsigned share) { return below(100) < share; }
  Duration between(Milliseconds least, Milliseconds most) {
    const auto micros = static_cast<std::uint64_t>((most - least).count()) * 1000 + 1;
    return least + std::chrono::microseconds(below(micros));
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace elastic::simulation
