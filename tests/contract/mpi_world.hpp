#pragma once

#include "backend_contract.hpp"

namespace elastic::collectives {

/// The backends of a view over all processes of MPI_COMM_WORLD, with new links between them; each
/// process has its own rank's. Collective.
World mpi_world();

}  // namespace elastic::collectives
