#pragma once

#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <vector>

#include "base/status.hpp"
#include "elastic/types.hpp"

namespace elastic::collectives {

/// MPI in this process, from its start to the end of the process: MPI can neither be started again
/// nor change its processes.
class MpiProcess {
 public:
  /// The single instance.
  static MpiProcess& instance();

  /// Initialises MPI, unless the program has; then the program's thread level must suffice. A
  /// collective call of all processes of MPI_COMM_WORLD. `under_mpirun`: mpirun started this
  /// process, so that initialisation connects it with the others.
  Status start(std::size_t lanes, bool under_mpirun);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm communicator(std::size_t lane) const { return communicators_[lane]; }

  /// ok for the first view that has all processes. kUnavailable for any other: the message says
  /// that membership is fixed, and which backends to use instead.
  Status serve(std::uint64_t generation, int size);

  /// Records that an operation was given up, so that MPI_Finalize would wait for ever.
  void give_up() { given_up_ = true; }

 private:
  MpiProcess() = default;
  static void finalize();

  bool started_ = false;
  bool given_up_ = false;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Comm> communicators_;
  std::uint64_t generation_ = 0;  // the generation of the served view; 0: none yet
};

}  // namespace elastic::collectives
