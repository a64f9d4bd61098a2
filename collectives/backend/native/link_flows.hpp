#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/tuning.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// Of the link to another host that has most; 0 where there is none.
std::uint64_t flows_between_hosts(transport::Mesh& mesh, const plan::Hosts& hosts);

/// Has links to other hosts use so many of their flows.
void use_flows(transport::Mesh& mesh, const plan::Hosts& hosts, std::uint64_t flows);

/// With how many flows, of `opened`, a bulk message between hosts takes hardly longer than with the
/// best number, and what messages cost then. The links use that many from then on. All ranks call
/// it at the same point of an operation and get the same: the greatest of their times counts.
/// `one_flow` are the costs of a message that went over one flow. Takes some tens of milliseconds
/// where the line is slow, and none where it is too slow to try.
Result<plan::LinkCosts> measure_flows(Executor& executor, PlanCache& plans, transport::Mesh& mesh,
                                      const plan::Hosts& hosts, const plan::LinkCosts& one_flow,
                                      std::uint64_t opened);

}  // namespace elastic::collectives
