#pragma once

#include <string>
#include <vector>

namespace elastic::testing {

/// Environment variables for mpirun: any user may start more processes than there are cores, and no
/// process is bound to a core. Open MPI 5 leaves that to PRRTE, which has names of its own.
inline std::vector<std::string> open_mpi_settings() {
  return {"OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "OMPI_MCA_rmaps_base_mapping_policy=core:OVERSUBSCRIBE",
          "OMPI_MCA_hwloc_base_binding_policy=none",
          "PRTE_MCA_rmaps_default_mapping_policy=core:OVERSUBSCRIBE",
          "PRTE_MCA_hwloc_default_binding_policy=none"};
}

}  // namespace elastic::testing
