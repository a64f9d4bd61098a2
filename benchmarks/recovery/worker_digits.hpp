#pragma once

#include <cstdint>
#include <span>

#include "base/status.hpp"

namespace elastic::bench {

/// Inputs with sums that show which workers were counted. In call number `call`, the worker that
/// started as rank r contributes one digit of base 4 at place r of an int64. The digit, 1 to 3,
/// depends on the call, so that a worker counted twice, or a contribution from another call, shows.
inline constexpr int kMostDigits = 32;

std::int64_t digit_of(int call, int start_rank);

/// \returns a set of workers: bit r is set if the worker that started as rank r was counted.
/// kInternal if a sum does not consist of whole contributions, or if the elements differ.
Result<std::uint32_t> counted_in(std::span<const std::int64_t> sums, int call, int workers);

}  // namespace elastic::bench
