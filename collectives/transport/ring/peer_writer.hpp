#pragma once

#include <cstddef>

#include "base/ticks.hpp"
#include "collectives/kernels/copy.hpp"
#include "collectives/transport/ring/store_choice.hpp"

namespace elastic::transport {

/// Copies to shared memory that one worker on another core is about to read, in the way that is
/// quicker with that worker. Owned by the thread that owns the link.
class PeerWriter {
 public:
  void copy(std::byte* into, const std::byte* from, std::size_t bytes) {
    while (bytes > 0) {
      const StoreChoice::Piece piece = choice_.next(bytes);
      if (piece.bytes < StoreChoice::kLeastBytes) {  // the clock itself would take time
        kernels::copy(into, from, piece.bytes, piece.store);
      } else {
        const std::int64_t begin = ticks();
        kernels::copy(into, from, piece.bytes, piece.store);
        choice_.took(piece, ticks() - begin);
      }
      into += piece.bytes;
      from += piece.bytes;
      bytes -= piece.bytes;
    }
  }

 private:
  StoreChoice choice_;
};

}  // namespace elastic::transport
