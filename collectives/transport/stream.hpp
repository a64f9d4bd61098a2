#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace elastic::transport {

/// One ordered, reliable, duplex byte stream to a peer: all that a transport has to provide.
///
/// Nothing here blocks. A stream belongs to one thread at a time: the one that runs the operation
/// of its lane. `Link` does the framing above it, the same for every transport.
///
/// A transport that can show received bytes in place (shared memory) does so in `peek`, so
/// that a reduction reads them there and no copy is made. Its streams are SharedMemoryFeatures,
/// too.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Writes as much of `parts`, in order, as fits now. Returns the number of bytes taken, 0 if none
  /// fits. Fails with kPeerLost when the peer is gone.
  virtual Result<std::size_t> write(std::span<const std::span<const std::byte>> parts) = 0;

  /// Copies up to `into.size()` received bytes, 0 if none are there. Takes what `peek` showed
  /// first. Fails with kPeerLost when the peer is gone and everything it sent has been read.
  virtual Result<std::size_t> read(std::span<std::byte> into) = 0;

  /// Shows received bytes without taking them. Returns at least `at_least` contiguous bytes
  /// (at most kPeekLimit may be asked for), or an empty span when fewer are there yet. The span is
  /// valid until the next call on this stream. Fails like `read`.
  virtual Result<std::span<const std::byte>> peek(std::size_t at_least) = 0;

  /// Takes `bytes` of what the last `peek` showed.
  virtual void consume(std::size_t bytes) = 0;

  /// The descriptor to poll(2) before sleeping: readable when bytes arrived (or room was made, for
  /// transports that signal that on the same descriptor) or when the peer is gone. Not owned.
  virtual int fd() const = 0;

  /// Announces that the owner is about to sleep in poll(2) until it can read and/or write. Returns
  /// false when there is already something to do: do not sleep then. Sets `events` to what poll(2)
  /// must watch on `fd()`. After the sleep, and also when false came back, call `finish_wait`.
  virtual bool prepare_wait(bool want_read, bool want_write, short& events) = 0;
  virtual void finish_wait() = 0;

  /// Whether the peer was seen to be gone by the last `finish_wait`, even if what it sent before
  /// has not been read.
  virtual bool peer_gone() const = 0;

  /// Looks whether the way to the peer still works, after a sleep in which nothing came. True while
  /// there is something to find out: look again soon. kPeerLost when the way is broken. A transport
  /// without a network in between has nothing to find out.
  virtual Result<bool> look(TimePoint /*now*/) { return false; }

  /// Whether bytes can be damaged unnoticed on the way, so that payloads need a
  /// checksum of their own: TCP's has 16 bits, and is often left to the network card.
  virtual bool needs_checksum() const { return false; }

  /// "shm" or "tcp"; tests have others.
  virtual const char* transport() const = 0;

  /// The most that `peek` may be asked for at once: a frame header fits.
  static constexpr std::size_t kPeekLimit = 4096;
};

using StreamPtr = std::unique_ptr<Stream>;
using StreamPair = std::pair<StreamPtr, StreamPtr>;

}  // namespace elastic::transport
