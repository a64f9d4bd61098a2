#pragma once

#include <cstddef>

#include "benchmarks/peers/peer.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/kernels/copy.hpp"

namespace elastic::bench {

/// What a tensor held that a call in place overwrites, kept as elastic keeps it: what recovering it
/// takes at the least. Of no use here, but for the time.
class KeptInput {
 public:
  explicit KeptInput(bool keeps) : keeps_(keeps) {}

  void begin(const std::byte* input, const std::byte* output, std::size_t bytes) {
    tensor_ = keeps_ && input == output ? input : nullptr;
    if (tensor_ != nullptr) kept_.resize(bytes);
    store_ =
        bytes >= kernels::kBeyondCacheBytes ? kernels::Store::kStreaming : kernels::Store::kCached;
  }
  /// In front of writing there.
  void about_to(std::size_t begin, std::size_t bytes) {
    if (tensor_ != nullptr) kernels::copy(kept_.data() + begin, tensor_ + begin, bytes, store_);
  }

 private:
  const bool keeps_;
  const std::byte* tensor_ = nullptr;
  kernels::Store store_ = kernels::Store::kCached;
  collectives::Buffer kept_;
};

}  // namespace elastic::bench
