#pragma once

#include <string>

#include "base/status.hpp"
#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// The first failure among all ranks' `mine`. So whoever fails to begin is not waited for.
inline Status agree(const PeerStart& start, const Status& mine) {
  const auto failures = start.exchange(mine.ok() ? std::string() : mine.message());
  if (!mine.ok()) return mine;
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (failures[rank].empty()) continue;
    return Status(Code::kUnavailable, "rank " + std::to_string(rank) + ": " + failures[rank]);
  }
  return {};
}

}  // namespace elastic::bench
