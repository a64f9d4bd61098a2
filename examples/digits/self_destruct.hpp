#pragma once

#include <cstdint>
#include <string>

namespace digits {

/// For demonstrations: kills this process with SIGKILL in the middle of a step's allreduce.
class SelfDestruct {
 public:
  /// The worker that has `rank` when it comes to `step` dies there, and writes the time to
  /// <folder>/kill-<pid>.json just before.
  SelfDestruct(int rank, std::int64_t step, std::string folder)
      : rank_(rank), step_(step), folder_(std::move(folder)) {}

  /// Called by every worker right before the allreduce of `step`. The rank behind the one that dies
  /// comes a moment late, so that the others, and the one that dies, are inside when it does.
  void before_allreduce(std::int64_t step) const;

 private:
  int rank_;
  std::int64_t step_;
  std::string folder_;
};

}  // namespace digits
