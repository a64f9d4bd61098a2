#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/tuning.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// The greatest number of flows of a link to another host; 0 if there is no such link.
std::uint64_t flows_between_hosts(transport::Mesh& mesh, const plan::Hosts& hosts);

/// Makes the links to other hosts use `flows` of their flows.
void use_flows(transport::Mesh& mesh, const plan::Hosts& hosts, std::uint64_t flows);

/// Measures how many of `opened` flows are to carry data between hosts: the least number with which
/// a bulk message is hardly slower than with the best. The links use this number from then on.
/// \returns the costs of messages with it; `one_flow` are those measured with one flow. All ranks
/// call it at the same point of an operation and get the same costs: the greatest of their times
/// counts. A slow line takes some tens of milliseconds; a line that is too slow is not tried.
Result<plan::LinkCosts> measure_flows(Executor& executor, PlanCache& plans, transport::Mesh& mesh,
                                      const plan::Hosts& hosts, const plan::LinkCosts& one_flow,
                                      std::uint64_t opened);

}  // namespace elastic::collectives
