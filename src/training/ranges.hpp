#pragma once

#include <cstdint>
#include <vector>

#include "elastic/sampler.hpp"

namespace elastic::training {

using Ranges = std::vector<Sampler::Range>;

/// Positions in all of `ranges`.
std::uint64_t count(const Ranges& ranges);

/// Takes the first `wanted` positions (all, where there are fewer) off the front of `ranges`.
Ranges take_front(Ranges& ranges, std::uint64_t wanted);

/// Sorts disjoint ranges, drops empty ones and joins adjacent ones: one form for one set of
/// positions.
void normalise(Ranges& ranges);

}  // namespace elastic::training
