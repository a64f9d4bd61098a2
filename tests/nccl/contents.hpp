#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/backend/buffer.hpp"
#include "contract/calls.hpp"

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

}  // namespace elastic::collectives::nccl
