#pragma once

#include <memory>

#include "base/status.hpp"

namespace elastic::bench {

/// MPI in this process, while peers use it. If the program has initialised MPI before, this class
/// does not finalize it.
class MpiProcess {
 public:
  /// The instance for all peers of the process. kUnavailable if MPI cannot be initialised.
  static Result<std::shared_ptr<MpiProcess>> get(bool under_mpirun);
  ~MpiProcess();

  MpiProcess(const MpiProcess&) = delete;
  MpiProcess& operator=(const MpiProcess&) = delete;

 private:
  explicit MpiProcess(bool ours) : ours_(ours) {}

  const bool ours_;
};

}  // namespace elastic::bench
