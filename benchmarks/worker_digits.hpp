#pragma once

#include <cstdint>
#include <span>

#include "base/status.hpp"

namespace elastic::bench {

/// Sums that prove who was counted: in call number `call`, the worker that started as rank r
/// contributes one decimal digit at place r of an int64. Digits are 1 to 4 by the number of the
/// call, so a worker counted twice, or a contribution from another call, shows.
inline constexpr int kMostDigits = 18;

std::int64_t digit_of(int call, int start_rank);

/// Bit r is set when the worker that started as rank r was counted. kInternal when the sum is not
/// one of whole contributions, or the elements do not have the same.
Result<std::uint32_t> counted_in(std::span<const std::int64_t> sums, int call, int workers);

}  // namespace elastic::bench
