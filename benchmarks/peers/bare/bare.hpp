#pragma once

#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// The peers "bare:cached", "bare:streaming" and "bare:tcp": the least that an allreduce can cost
/// on a machine. They are made of the library's loops and a protocol that keeps no input to recover
/// from, checks nothing and survives nothing. The former two go through memory of one host, which
/// they fill by ordinary stores or past the caches; the latter is a ring of TCP connections.
/// "bare:kept-cached" and "bare:kept-streaming" are the former two, and keep what they overwrite.
const PeerModule& bare_peers();

}  // namespace elastic::bench
