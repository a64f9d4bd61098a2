#pragma once

#include <cstddef>

#include "base/status.hpp"
#include "base/unique_fd.hpp"
#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// Memory that all ranks have, who have to be on one host: zeros to begin with.
class HostMemory {
 public:
  /// Rank 0 makes it. All ranks call it alike, and all get it or none. kUnavailable says why not.
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
