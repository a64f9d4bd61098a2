#include "training/training_id.hpp"

#include <random>

namespace elastic::training {

namespace {
constexpr unsigned kBranchBits = 32;

std::uint64_t random_half() {
  std::random_device random;
  return std::uint64_t{random()} | 1U;  // never 0
}
}  // namespace

std::uint64_t new_training() {
  return random_half() << kBranchBits | random_half();
}

std::uint64_t new_branch(std::uint64_t training) {
  std::uint64_t branch = training;
  while (branch == training) branch = training >> kBranchBits << kBranchBits | random_half();
  return branch;
}

bool same_training(std::uint64_t one, std::uint64_t other) {
  return one != 0 && one >> kBranchBits == other >> kBranchBits;
}

}  // namespace elastic::training
