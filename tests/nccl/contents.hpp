#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "contract/calls.hpp"
#include "cuda/driver_calls.hpp"

/// The contents of the tests' tensors on devices.
namespace elastic::collectives::nccl {

inline std::uint64_t address(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

inline std::vector<std::byte> bytes_of(DType dtype, const std::vector<double>& values) {
  Buffer buffer;
  buffer.resize(values.size() * size_of(dtype));
  fill(buffer, section(dtype, values.size()), values);
  return {buffer.bytes().begin(), buffer.bytes().end()};
}

/// Brings a result on the device to its tensors, and waits until it is there.
inline Status unpack(const testing::Gpu& gpu, DeviceResult& result) {
  const Result<void*> via = result.begin_unpack();
  if (!via.ok() || via.value() == nullptr) return via.status();
  testing::Gpu::must("cuStreamSynchronize",
                     gpu.call<int(void*)>("cuStreamSynchronize")(via.value()));
  return {};
}

}  // namespace elastic::collectives::nccl
