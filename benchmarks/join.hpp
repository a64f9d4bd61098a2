#pragma once

#include "base/status.hpp"
#include "benchmarks/command_line.hpp"
#include "benchmarks/library_settings.hpp"

namespace elastic::bench {

/// `elastic-bench join`: how long members stand still while a newcomer is admitted and receives the
/// state, over many jobs, next to a broadcast of as many bytes on the same workers.
Status run_join(const JoinOptions& options, const LibrarySettings& settings);

}  // namespace elastic::bench
