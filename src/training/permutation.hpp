#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace elastic::training {

/// The order in which an epoch takes the samples 0 to size-1: a function of its arguments alone,
/// the same with every compiler and standard library (std::shuffle is not).
std::vector<std::size_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t epoch);

}  // namespace elastic::training
