#pragma once

#include <cstdint>

#include <elastic/results.hpp>

namespace storm {

/// Makes one of the collectives that are no allreduce, chosen by `step`, and checks its result.
/// `members`: as an earlier call returned them on all.
/// \returns a number that is the same on all workers that have returned from the call.
std::uint64_t other_call(std::uint64_t step, const elastic::Contributors& members);

}  // namespace storm
