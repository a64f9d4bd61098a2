#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace elastic::transport {

/// A sum of bytes. One thread at a time adds to it, any thread reads it, and adding costs as much
/// as for a plain number.
class ByteCount {
 public:
  void add(std::size_t bytes) {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> bytes_{0};
};

/// The bytes that a worker has sent to others or read from their memory, by kind of link.
struct LinkTraffic {
  std::uint64_t shm = 0;
  std::uint64_t tcp = 0;
};

}  // namespace elastic::transport
