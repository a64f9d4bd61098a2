#include "collectives/backend/module.hpp"

#include "collectives/backend/mpi/mpi_backend.hpp"
#include "collectives/backend/mpi/mpi_process.hpp"
#include "collectives/backend/mpi/mpi_status.hpp"

namespace {

using namespace elastic;
using namespace elastic::collectives;

Status start(const ModuleStart& how) {
  return MpiProcess::instance().start(how.lanes, how.under_mpirun);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const BackendModule elastic_module = {
    {ELASTIC_MODULE_ABI, mpi_library},
    /*fixed_membership=*/true,
    /*works_on_devices=*/false,
    /*uses_all_links=*/false,
    /*abort_waits_for_peers=*/false,
    start,
    make_mpi_backend,
    /*end=*/nullptr};
