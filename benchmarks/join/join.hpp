#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"
#include "benchmarks/job/library_settings.hpp"

namespace elastic::bench {

/// `elastic-bench join`: measures in many jobs how long members are paused while a joiner is
/// admitted and receives the state. For comparison the same workers broadcast as many bytes.
Status run_join(const JoinOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
