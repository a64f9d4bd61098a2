#pragma once

#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <vector>

#include "base/status.hpp"
#include "elastic/types.hpp"

namespace elastic::collectives {

/// The MPI of a process, once and until it ends: MPI can neither be started again nor be given
/// other processes. Also keeps what MPI may still write to after an operation was given up.
class MpiProcess {
 public:
  /// The one of this process.
  static MpiProcess& instance();

  /// Initialises MPI, unless the program has: then with what it has, which must allow for threads.
  /// All processes of MPI_COMM_WORLD come together in it. `under_mpirun`: whether initialising
  /// would join the processes that were started together.
  Status start(std::size_t lanes, bool under_mpirun);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm communicator(std::size_t lane) const { return communicators_[lane]; }

  /// Serves the first view that has all processes, in their order. kUnavailable for any other: says
  /// that membership is fixed, and what to use instead.
  Status serve(std::uint64_t generation, int size);

  /// Something under way was given up, so that MPI_Finalize would wait for ever.
  void give_up() { given_up_ = true; }

 private:
  MpiProcess() = default;
  Status take_over();
  static void finalize();

  bool started_ = false;
  bool given_up_ = false;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Comm> communicators_;
  std::uint64_t generation_ = 0;  // the one that is served; 0: none yet
};

}  // namespace elastic::collectives
