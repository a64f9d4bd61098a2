#pragma once

#include "collectives/plan/plan.hpp"

namespace elastic::plan {

/// Empty messages to ever farther ranks: no rank completes before every rank has started.
Plan dissemination_barrier(int rank, int size);

/// `plan`, and beside it a barrier: no rank completes it before every rank has started. On each
/// link the barrier's messages go first, so that they never wait for those of `plan`.
Plan with_barrier(int rank, int size, const Plan& plan);

}  // namespace elastic::plan
