#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace elastic::transport {

/// How long nothing may answer what was sent before the way to the peer counts as broken. Not less
/// than 1200 ms: Linux answers the probes of a closed window at most every 500 ms, so that one goes
/// unanswered and the next follows up to a second later.
inline constexpr Milliseconds kDefaultLinkTimeout{1500};

/// Tells a TCP connection whose way to the peer is broken from one whose peer is merely slow.
///
/// TCP_USER_TIMEOUT cannot: it also ends a connection whose peer acknowledges everything but has
/// not read for that long, as does a rank that computes for a while with its buffers full. The
/// kernel of a slow or stopped process still answers data and window probes, though. So what counts
/// here is that something was tried and that no answer has come back since.
class SilenceWatch {
 public:
  explicit SilenceWatch(Milliseconds limit) : limit_(limit) {}

  /// The kernel's figures of a connection.
  struct Traffic {
    bool outstanding = false;   ///< bytes were written that the peer has not acknowledged
    std::uint64_t answers = 0;  ///< grows with every segment that only acknowledges, and with
                                ///< what is acknowledged. Not with data: a peer that none of our
                                ///< answers reaches repeats its own for ever
    std::uint64_t tried = 0;    ///< data segments, repetitions and probes sent so far
  };

  /// To be called every now and then while something is outstanding. False when the silence has
  /// lasted for the limit.
  bool alive(const Traffic& traffic, TimePoint now);

  /// The same for a socket. True while anything is outstanding: look again soon. kPeerLost when the
  /// silence has lasted for the limit.
  Result<bool> look(int socket, TimePoint now);

 private:
  Milliseconds limit_;
  std::uint64_t answers_ = 0;
  std::uint64_t tried_ = 0;  // when the last answer was seen
  TimePoint silent_since_{};
};

/// Keepalive, for an end with nothing outstanding: its kernel asks, and gives up after about 3 s
/// without an answer. A peer that is slow, or stopped, answers.
void keep_alive(int socket);

}  // namespace elastic::transport
