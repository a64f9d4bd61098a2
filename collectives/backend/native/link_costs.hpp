#pragma once

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/tuning.hpp"

namespace elastic::collectives {

/// Times messages to the next rank of this host and of the next one, and agrees with all ranks on
/// the greatest of their times. All ranks call it at the same point of an operation. Takes the time
/// of about ten small messages and three of 64 KiB for each kind of link. None of them needs more
/// than one flow.
Result<plan::LinkCosts> measure_link_costs(Executor& executor, PlanCache& plans, int rank,
                                           const plan::Hosts& hosts);

}  // namespace elastic::collectives
