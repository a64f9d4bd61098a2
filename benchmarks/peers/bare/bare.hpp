#pragma once

#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// The "bare" peers show the least cost of an allreduce on a machine. They use the library's loops,
/// but keep no input for recovery, check nothing, and survive no fault. "bare:cached" and
/// "bare:streaming" use shared memory, written by temporal or non-temporal stores. "bare:tcp" is a
/// ring of TCP connections. "bare:kept-cached" and "bare:kept-streaming" are the former two with a
/// copy of the input that they overwrite.
const PeerModule& bare_peers();

}  // namespace elastic::bench
