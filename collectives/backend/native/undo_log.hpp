#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/kernels/store.hpp"
#include "collectives/transport/link.hpp"

namespace elastic::collectives {

/// Saves memory piece by piece before a collective in place overwrites it, so that a failed
/// operation can restore its input. Costs one copy of the overwritten memory.
///
/// Owned by the thread that runs the lane's operation. Others may call `about_to`, too.
class UndoLog final : public transport::Overwriting {
 public:
  /// Empties the log. It saves to `storage`, at most `bytes`; `storage` must outlive its use.
  void begin(Buffer& storage, std::size_t bytes);
  void about_to(std::span<std::byte> memory) override;
  /// Copies everything back that was saved since `begin`.
  void restore();
  void clear() { saved_.clear(); }

 private:
  std::byte* reserve(std::span<std::byte> memory);

  Buffer* storage_ = nullptr;
  Mutex mutex_;  // of `about_to`
  std::size_t used_ = 0;
  kernels::Store store_ = kernels::Store::kTemporal;
  std::vector<std::span<std::byte>> saved_;  // copies are in storage_, one after another
};

}  // namespace elastic::collectives
