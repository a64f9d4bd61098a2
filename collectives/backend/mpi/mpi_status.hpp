#pragma once

#include <string>

#include "base/status.hpp"

namespace elastic::collectives {

/// ok, or what MPI says of the error.
Status mpi_status(int error, const char* what);

/// Name and version of the library: "Open MPI v4.1.4".
std::string mpi_library();

}  // namespace elastic::collectives
