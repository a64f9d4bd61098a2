#include "training/permutation.hpp"

#include <numeric>
#include <utility>

namespace elastic::training {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014).
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t state) : state_(state) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t word = state_;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebU;
    return word ^ (word >> 31);
  }

  /// Uniform in [0, bound). Rejects the few words that would favour small results.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t uneven = (0 - bound) % bound;
    std::uint64_t word = next();
    while (word < uneven) word = next();
    return word % bound;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<std::size_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Seed and epoch each pass through the mixer, so that (1, 2) and (2, 1) have nothing in common.
  SplitMix random(SplitMix(seed).next() + epoch);
  random = SplitMix(random.next());
  for (std::size_t left = size; left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

}  // namespace elastic::training
