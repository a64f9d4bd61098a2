#pragma once

#include <cstddef>
#include <span>

namespace elastic::kernels::codec {

/// The kernels of kernels.cu as the CUDA driver loads them, for all devices that this build is for;
/// empty if it was built without CUDA.
std::span<const std::byte> image();

}  // namespace elastic::kernels::codec
