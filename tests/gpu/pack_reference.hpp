#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/kernels/device/pack_plan.hpp"

namespace elastic::gpu {

/// A pack or unpack request, as offsets into two memories with the same layout on the host and on
/// the device.
struct PackCase {
  struct Place {
    std::size_t offset = 0;  ///< bytes
    std::size_t count = 0;   ///< elements
  };
  kernels::device::Direction direction = kernels::device::Direction::kPack;
  DType tensor_dtype = DType::kF32;
  DType bucket_dtype = DType::kF32;
  kernels::device::Scale scale{};
  std::vector<Place> tensors;     ///< in the memory of tensors
  std::size_t bucket_offset = 0;  ///< in the memory of the bucket
  std::size_t tensor_bytes = 0;   ///< of the memory
  std::size_t bucket_bytes = 0;   ///< of the memory
};

/// Does it on the host, element by element: products and quotients in double precision, rounded to
/// what the kernels compute in, and halves converted as the library does. The memories are as those
/// of the case, and what is in neither a tensor nor the bucket stays.
void pack_on_host(const PackCase& one, std::vector<std::byte>& tensors,
                  std::vector<std::byte>& bucket);

}  // namespace elastic::gpu
