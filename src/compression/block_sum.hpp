#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "compression/device_codec.hpp"
#include "compression/tensor_block.hpp"
#include "compression/top_k.hpp"
#include "elastic/types.hpp"

namespace elastic::codecs {

/// The sum of the blocks of a tensor. Blocks that have all elements are added by one kernel, until
/// one of kTopK follows, which adds its elements by a kernel of its own.
class BlockSum {
 public:
  /// The sum replaces the floats of `data`, on the device of `codec`.
  BlockSum(const DeviceCodec& codec, const TensorView& data, void* stream)
      : codec_(codec), stream_(stream) {
    dense_.sums = static_cast<float*>(data.data);
    dense_.count = data.count;
    dense_.begins = true;
  }

  /// `bytes` are those of the block, on the device.
  Status add(const EncodedBlock& block, const std::uint8_t* bytes) {
    if (block.kind == CompressionKind::kTopK) {
      Status status = add_pending(1);
      if (!status.ok()) return status;
      return codec_.queue(
          kernels::codec::AddTopK{bytes, dense_.sums, dense_.count,
                                  static_cast<std::uint32_t>(block.bytes.size() / top_k_bytes(1))},
          stream_);
    }
    if (dense_.used == kernels::codec::kMostDenseBlocks) {
      Status status = add_pending(1);
      if (!status.ok()) return status;
    }
    const bool is_int8 = block.kind == CompressionKind::kInt8;
    dense_.blocks[dense_.used++] = {bytes, is_int8 ? block.parameter : 0};
    return {};
  }

  /// To be called last.
  Status divide(float divisor) { return add_pending(divisor); }

 private:
  Status add_pending(float divisor) {
    if (dense_.used == 0 && !dense_.begins && divisor == 1) return {};
    dense_.divisor = divisor;
    Status status = codec_.queue(dense_, stream_);
    dense_.used = 0;
    dense_.begins = false;
    return status;
  }

  const DeviceCodec& codec_;
  void* const stream_;
  kernels::codec::AddDense dense_{};
};

}  // namespace elastic::codecs
