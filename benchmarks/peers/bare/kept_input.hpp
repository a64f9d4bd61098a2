#pragma once

#include <cstddef>

#include "benchmarks/peers/peer.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/kernels/copy.hpp"

namespace elastic::bench {

/// Copies the input that a call in place overwrites, as elastic does for recovery. The bare peers
/// do not use the copy; it only adds the least time that recoverability takes.
class KeptInput {
 public:
  explicit KeptInput(bool keeps) : keeps_(keeps) {}

  void begin(const std::byte* input, const std::byte* output, std::size_t bytes) {
    tensor_ = keeps_ && input == output ? input : nullptr;
    if (tensor_ != nullptr) kept_.resize(bytes);
    store_ = bytes >= kernels::kBeyondCacheBytes ? kernels::Store::kNonTemporal
                                                 : kernels::Store::kTemporal;
  }
  /// To be called before the output is written at [begin, begin + bytes).
  void about_to(std::size_t begin, std::size_t bytes) {
    if (tensor_ != nullptr) kernels::copy(kept_.data() + begin, tensor_ + begin, bytes, store_);
  }

 private:
  const bool keeps_;
  const std::byte* tensor_ = nullptr;
  kernels::Store store_ = kernels::Store::kTemporal;
  collectives::Buffer kept_;
};

}  // namespace elastic::bench
