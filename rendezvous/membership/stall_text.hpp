#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// The call of a member in that lane: "allreduce #21" for the 21st call, "named alltoall 'grad' of
/// ranks 0 and 2", or "".
std::string call_in(const Heartbeat& member, std::size_t lane);

/// The ranks that make a named call, ascending: of `members`, those of its group.
std::vector<std::size_t> ranks_in(const CallUnderWay& call, std::size_t members);

/// Describes a stall of `lane` by the calls of `ranks`: "rank 1 has not entered allreduce #21 for
/// 30 s; it has completed 20 calls". `members` in rank order.
std::string stall_text(const std::vector<const Heartbeat*>& members,
                       const std::vector<std::size_t>& ranks, std::size_t lane, Duration lasted);

/// "0.1 s", "45 s"
std::string seconds_text(Duration duration);

}  // namespace elastic::rendezvous
