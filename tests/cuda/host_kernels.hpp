#pragma once

#include "collectives/kernels/device/codec/kernel_names.hpp"

namespace elastic::testing {

/// Does in host memory, and one after another, what a kernel's threads do on a device. `parameters`
/// are those of the kernel.
void run_on_host(kernels::codec::Kernel kernel, const void* parameters);

}  // namespace elastic::testing
