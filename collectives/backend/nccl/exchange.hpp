#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/backend.hpp"

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

/// Over `backend`, which nothing else may use meanwhile, from `position` on.
Exchange exchange_over(std::shared_ptr<Backend> backend, std::uint64_t position);

}  // namespace elastic::collectives::nccl
