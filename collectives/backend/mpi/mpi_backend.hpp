#pragma once

#include <memory>

#include "base/status.hpp"
#include "collectives/backend/module.hpp"

namespace elastic::collectives {

/// MPI's allreduce, allgather, reduce_scatter and broadcast on the processes of MPI_COMM_WORLD,
/// which are the members of `view` in rank order; kUnavailable where they are not. MPI is entered
/// only after all ranks have met on the links with the same call, and is waited for together with
/// them: so a mismatch, an abort and a loss end as they do elsewhere. The rest is `view.native`'s.
Result<std::unique_ptr<Backend>> make_mpi_backend(ModuleView view);

}  // namespace elastic::collectives
