#pragma once

#include "collectives/plan/plan.hpp"

namespace elastic::plan {

/// Empty messages to ever farther ranks: no rank completes before every rank has started.
Plan dissemination_barrier(int rank, int size);

}  // namespace elastic::plan
