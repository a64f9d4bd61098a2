#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/backend/buffer.hpp"
#include "collectives/kernels/store.hpp"
#include "collectives/transport/link.hpp"

namespace elastic::collectives {

/// Keeps memory as it was before a collective in place overwrites it, piece by piece, so that an
/// operation that fails leaves its input behind.
///
/// Owned by the thread that runs the lane's operation.
class UndoLog final : public transport::Overwriting {
 public:
  /// Starts anew. `storage` takes what is saved, at most `bytes`; it outlives the log's use.
  void begin(Buffer& storage, std::size_t bytes);
  void about_to(std::span<std::byte> memory) override;
  /// Puts everything back that was saved since `begin`.
  void restore();
  void clear() { saved_.clear(); }

 private:
  Buffer* storage_ = nullptr;
  std::size_t used_ = 0;
  kernels::Store store_ = kernels::Store::kCached;
  std::vector<std::span<std::byte>> saved_;  // in storage_ one behind the other
};

}  // namespace elastic::collectives
