#pragma once

#include <cstddef>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// Shared memory of all ranks, which have to be on one host. It is filled with zeros.
class HostMemory {
 public:
  /// Rank 0 makes the memory, and all ranks map it. All ranks call it; it fails on all or on none.
  static Result<HostMemory> open(const PeerStart& start, std::size_t bytes);

  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&&) = delete;
  ~HostMemory();

  std::byte* data() const { return data_; }

 private:
  HostMemory(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  static Result<HostMemory> map(const UniqueFd& file, std::size_t bytes);

  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace elastic::bench
