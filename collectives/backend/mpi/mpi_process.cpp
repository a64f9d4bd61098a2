#include "collectives/backend/mpi/mpi_process.hpp"

#include <cstdlib>
#include <string>

#include "collectives/backend/mpi/mpi_status.hpp"

namespace elastic::collectives {

namespace {

constexpr const char* kInstead =
    "MPI serves a fixed membership; for a job that goes on when workers are lost or join, use the "
    "backend native or gloo (ELASTIC_BACKEND)";

}  // namespace

MpiProcess& MpiProcess::instance() {
  static MpiProcess the;
  return the;
}

Status MpiProcess::start(std::size_t lanes, bool under_mpirun) {
  if (started_) return {};
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0 && !under_mpirun) {
    return Status(Code::kUnavailable,
                  std::string("the backend 'mpi' is for workers that mpirun starts. ") + kInstead);
  }
  int provided = MPI_THREAD_SINGLE;
  if (initialized == 0) {
    if (Status status = mpi_status(
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
        !status.ok()) {
      return status;
    }
    std::atexit(&MpiProcess::finalize);
  } else {
    MPI_Query_thread(&provided);
  }
  if (provided < MPI_THREAD_MULTIPLE) {
    return Status(Code::kUnavailable,
                  "the backend 'mpi' needs MPI_THREAD_MULTIPLE: initialise MPI with it, or leave "
                  "that to elastic; and MPI must have been built with it");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    MPI_Comm own = MPI_COMM_NULL;
    if (Status status = mpi_status(MPI_Comm_dup(MPI_COMM_WORLD, &own), "MPI_Comm_dup");
        !status.ok()) {
      return status;
    }
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    communicators_.push_back(own);
  }
  started_ = true;
  return {};
}

Status MpiProcess::serve(std::uint64_t generation, int size) {
  if (size != size_) {
    return Status(Code::kUnavailable, "MPI_COMM_WORLD has " + std::to_string(size_) +
                                          " processes, but generation " +
                                          std::to_string(generation) + " of the job has " +
                                          std::to_string(size) + " workers. " + kInstead);
  }
  if (generation_ == 0) generation_ = generation;
  if (generation == generation_) return {};
  return Status(Code::kUnavailable, "the view changed (generation " + std::to_string(generation) +
                                        " after " + std::to_string(generation_) +
                                        "), and what MPI had under way is lost. " + kInstead);
}

void MpiProcess::finalize() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && !instance().given_up_) MPI_Finalize();
}

}  // namespace elastic::collectives
