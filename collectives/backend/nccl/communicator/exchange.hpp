#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic::collectives::nccl {

/// An allgather of a few bytes between the ranks of a view, without NCCL. Both functions own the
/// objects that they use: a thread that hangs in NCCL may hold them until the process ends.
struct Exchange {
  /// Sends `mine` to all ranks, and returns the bytes of each rank in rank order. All ranks call it
  /// equally often. Fails when a rank is lost, and after `call_off`.
  std::function<Result<std::vector<std::string>>(const std::string& mine)> allgather;
  /// Makes `allgather` return. Any thread; must not throw.
  std::function<void()> call_off;
};

}  // namespace elastic::collectives::nccl
