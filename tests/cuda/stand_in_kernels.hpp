#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace elastic::cuda_stand_in {

/// The host's address of so many bytes of a device; null if they are not all in one block.
using Inside = std::function<std::byte*(std::uintptr_t address, std::size_t bytes)>;

/// The kernel of this name, of those that encode and decode gradients; null if there is none.
void* find_kernel(const char* name);

/// The work of a kernel, as the processor does it: `parameters` are copied. Nothing, if an address
/// is none of a device.
std::function<void()> work_of(const void* kernel, const void* parameters, const Inside& inside);

}  // namespace elastic::cuda_stand_in
