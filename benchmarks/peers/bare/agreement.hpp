#pragma once

#include <string>

#include "base/status.hpp"
#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// \returns this rank's failure, or else the first failure of a rank, so that no rank waits for one
/// that has failed to start.
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
