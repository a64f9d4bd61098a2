#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace elastic::transport {

/// A sum of bytes. Any thread reads it.
class ByteCount {
 public:
  /// For one thread at a time: costs as much as for a plain number.
  void add(std::size_t bytes) {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  void add_from_any_thread(std::size_t bytes) {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
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
