#include "collectives/backend/module.hpp"

#include <mpi.h>
#include <string>
#include <utility>

#include "collectives/backend/mpi/mpi_backend.hpp"
#include "collectives/backend/mpi/mpi_process.hpp"

namespace {

using namespace elastic;
using namespace elastic::collectives;

/// "Open MPI v4.1.4, ...": up to the first line's end or comma.
std::string describe_mpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text, static_cast<std::size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));
}

Status start(const ModuleStart& how) {
  return MpiProcess::instance().start(how.lanes, how.under_mpirun);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const BackendModule elastic_module = {
    {ELASTIC_MODULE_ABI, describe_mpi}, /*fixed_membership=*/true, start, make_mpi_backend};
