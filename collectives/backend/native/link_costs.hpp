#pragma once

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/tuning.hpp"

namespace elastic::collectives {

/// Measures latency and bandwidth of the links inside and between hosts. Each rank times messages
/// to its next rank on this host and to one on the next host; all ranks then agree on the greatest
/// times. All ranks call it at the same point of an operation. For each kind of link it takes the
/// time of about ten small messages and three of 64 KiB, over one flow each.
Result<plan::LinkCosts> measure_link_costs(Executor& executor, PlanCache& plans, int rank,
                                           const plan::Hosts& hosts);

}  // namespace elastic::collectives
