#pragma once

#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/plan_cache.hpp"

namespace elastic::collectives {

/// Replaces each value by the greatest that a rank has given for it. All ranks give as many. Also a
/// barrier. log2(ranks) messages of each rank, or one to each other where they are few.
Status take_greatest(Executor& executor, PlanCache& plans, std::span<std::int64_t> values);

}  // namespace elastic::collectives
