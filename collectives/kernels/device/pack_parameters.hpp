#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>

#include "collectives/kernels/device/device_scale.hpp"
#include "elastic/types.hpp"

namespace elastic::kernels::device {

/// Rows of a plan that fit into the parameters of a kernel, of which there are 4 KiB on all devices
/// and with all drivers.
inline constexpr std::uint32_t kParameterRows = 200;

/// The parameters of a kernel: by value, so that nothing needs to stay when the launch has
/// returned.
struct PackParameters {
  std::uint64_t bucket = 0;
  DeviceScale scale{};
  std::uint32_t chunk_elements = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_chunk = 0;  ///< that of the first block, in the plan
  bool unpacks = false;
  /// The table, in device memory: offsets, addresses and first chunks of `rows` rows one after
  /// another, the former with one more. Null: it is here.
  const std::uint64_t* table = nullptr;
  std::uint64_t offsets[kParameterRows + 1] = {};
  std::uint64_t addresses[kParameterRows] = {};
  std::uint32_t first_chunks[kParameterRows] = {};
};
static_assert(sizeof(PackParameters) <= 4096);

/// Has CUDA load the kernel that `launch_pack` starts. CUDA does it otherwise with the first
/// launch, and may wait for all that the device has to do.
[[nodiscard]] cudaError_t load_pack(DType tensor_dtype, DType bucket_dtype, bool is_copy,
                                    bool unpacks);

/// Starts `blocks` blocks, each of which moves a chunk. Returns without waiting for them.
[[nodiscard]] cudaError_t launch_pack(DType tensor_dtype, DType bucket_dtype, bool is_copy,
                                      const PackParameters& parameters, std::uint32_t blocks,
                                      cudaStream_t stream);

}  // namespace elastic::kernels::device
