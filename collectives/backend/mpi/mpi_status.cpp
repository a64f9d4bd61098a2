#include "collectives/backend/mpi/mpi_status.hpp"

#include <mpi.h>

namespace elastic::collectives {

Status mpi_status(int error, const char* what) {
  if (error == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error, text, &length);
  return Status(Code::kUnavailable,
                std::string(what) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string whole(text, static_cast<std::size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));  // more follows about how it was built
}

}  // namespace elastic::collectives
