#include "benchmarks/peers/mpi_process.hpp"

#include <mpi.h>

#include "collectives/backend/mpi/mpi_status.hpp"

namespace elastic::bench {

using collectives::mpi_status;

Result<std::shared_ptr<MpiProcess>> MpiProcess::get(bool under_mpirun) {
  static std::weak_ptr<MpiProcess> known;
  if (auto process = known.lock()) return process;
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) {
    if (!under_mpirun) {
      return Status(Code::kUnavailable,
                    "MPI connects the processes that mpirun starts: mpirun -np 2 elastic-bench "
                    "..., without --np");
    }
    // FUNNELED: the process has other threads, but they do not call MPI.
    int provided = MPI_THREAD_SINGLE;
    const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (Status status = mpi_status(error, "MPI_Init_thread"); !status.ok()) return status;
  }
  const std::shared_ptr<MpiProcess> process(new MpiProcess(initialized == 0));
  known = process;
  return process;
}

MpiProcess::~MpiProcess() {
  if (ours_) MPI_Finalize();
}

}  // namespace elastic::bench
