#pragma once

#include <cstddef>

#include "collectives/plan/choose.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/parts.hpp"
#include "collectives/plan/plan.hpp"

namespace elastic::plan {

/// The plan of `rank` for an allreduce by `algorithm`, which the ranks must be able to run
/// (`can_do`). `exchange_segment_bytes`: see Thresholds.
Plan make_allreduce(AllreduceAlgorithm algorithm, int rank, const Hosts& hosts, Elements elements,
                    std::size_t segment_bytes, std::size_t exchange_segment_bytes);

}  // namespace elastic::plan
