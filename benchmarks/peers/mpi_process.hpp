#pragma once

#include <memory>

#include "base/status.hpp"

namespace elastic::bench {

/// MPI, for as long as this process measures with it. Where somebody else has initialised MPI, it
/// is theirs to end.
class MpiProcess {
 public:
  /// One for all peers of the process. kUnavailable when MPI cannot be initialised here.
  static Result<std::shared_ptr<MpiProcess>> get(bool under_mpirun);
  ~MpiProcess();

  MpiProcess(const MpiProcess&) = delete;
  MpiProcess& operator=(const MpiProcess&) = delete;

 private:
  explicit MpiProcess(bool ours) : ours_(ours) {}

  const bool ours_;
};

}  // namespace elastic::bench
