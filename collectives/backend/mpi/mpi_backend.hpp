#pragma once

#include <memory>

#include "base/status.hpp"
#include "collectives/backend/module.hpp"

namespace elastic::collectives {

/// Makes a backend of MPI's allreduce, allgather, reduce_scatter and broadcast. kUnavailable if the
/// members of `view` are not the processes of MPI_COMM_WORLD in rank order. The ranks first compare
/// their calls over the links, and watch the links while they wait for MPI, so that a mismatch, an
/// abort and a loss end as in other backends. `view.native` performs all other calls.
Result<std::unique_ptr<Backend>> make_mpi_backend(ModuleView view);

}  // namespace elastic::collectives
