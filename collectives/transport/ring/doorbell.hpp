#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/unique_fd.hpp"

namespace elastic::transport {

/// A connected socket beside shared memory: a byte on it wakes a sleeping peer, its end tells that
/// the peer is gone.
class Doorbell {
 public:
  explicit Doorbell(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  /// Wakes the peer if it has said by `sleeps` that it sleeps, or is about to. Data that was
  /// published before is visible to it then.
  void ring_if(std::atomic<std::uint32_t>& sleeps);
  /// Reads all pending bytes. False when the peer is gone.
  bool silence();

 private:
  UniqueFd socket_;
};

}  // namespace elastic::transport
