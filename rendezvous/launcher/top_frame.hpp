#pragma once

#include <cstddef>
#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::launcher {

/// Characters of a terminal; 0: no bound.
struct FrameSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// The text of `elasticrun ctl top`: a headline, a line for each rank, and the latest events. Rates
/// are means over the time from `before` to `now`; of a worker that `before` does not have, over
/// its life. With too few rows, ranks and events are left out, and their number is told.
std::string top_frame(const rendezvous::StatusReply& before, const rendezvous::StatusReply& now,
                      const FrameSize& size = {});

}  // namespace elastic::launcher
