#pragma once

#include <cstdint>

namespace elastic {

/// Names one worker process for its whole life. Never reused: a restarted worker has another one.
using WorkerId = std::uint64_t;

}  // namespace elastic
