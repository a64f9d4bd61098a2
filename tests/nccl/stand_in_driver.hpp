#pragma once

#include <cstddef>

namespace elastic::nccl_stand_in {

/// Functions of the stand-in for the CUDA driver, of which the file is in NCCL_STAND_IN_DRIVER. An
/// error is anything but 0.
int launch_host_func(void* stream, void (*function)(void*), void* data);
/// The address for a device's thread of `bytes` of the device's memory; null if they are not in it.
std::byte* inside(const void* address, std::size_t bytes);
int allocate(void** memory, std::size_t bytes);
int free(void* memory);

}  // namespace elastic::nccl_stand_in
