#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/ticks.hpp"
#include "collectives/kernels/copy.hpp"
#include "collectives/transport/ring/store_policy.hpp"

namespace elastic::transport {

/// Copies to shared memory that one worker on another core is about to read, in the way that is
/// quicker with that worker. Owned by the thread that owns the link.
class PeerWriter {
 public:
  /// To `memory`, from `at` bytes on, and on from its start when its end is reached. At most as
  /// many bytes as it has.
  void copy(std::span<std::byte> memory, std::size_t at, const std::byte* from, std::size_t bytes) {
    while (bytes > 0) {
      const StorePolicy::Piece piece = policy_.next(at, std::min(bytes, memory.size() - at));
      if (piece.timed) {
        const std::int64_t begin = ticks();
        kernels::copy(memory.data() + at, from, piece.bytes, piece.store);
        policy_.took(piece, ticks() - begin);
      } else {
        kernels::copy(memory.data() + at, from, piece.bytes, piece.store);
      }
      at += piece.bytes;
      if (at == memory.size()) at = 0;
      from += piece.bytes;
      bytes -= piece.bytes;
    }
  }

 private:
  StorePolicy policy_;
};

}  // namespace elastic::transport
