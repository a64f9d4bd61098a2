#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace elastic::collectives::nccl {

/// How the ranks of a view hand each other a few bytes besides NCCL. Both functions own what they
/// need: a thread that hangs in NCCL may hold them for as long as the process lives.
struct Exchange {
  /// `mine` to all ranks; what each rank gave, in rank order. As often as the others call it. Ends
  /// when a rank is lost, and after `call_off`.
  std::function<Result<std::vector<std::string>>(const std::string& mine)> gather;
  /// Any thread; must not throw.
  std::function<void()> call_off;
};

}  // namespace elastic::collectives::nccl
