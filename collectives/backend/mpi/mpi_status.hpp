#pragma once

#include <string>

#include "base/status.hpp"

namespace elastic::collectives {

/// \returns ok, or a status with MPI's text for the error. `what` names the call.
Status mpi_status(int error, const char* what);

/// Name and version of the library: "Open MPI v4.1.4".
std::string mpi_library();

}  // namespace elastic::collectives
