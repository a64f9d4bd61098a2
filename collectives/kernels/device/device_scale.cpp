#include "collectives/kernels/device/device_scale.hpp"

#include <bit>

namespace elastic::kernels::device {

namespace {

/// Reciprocals are fixed-point numbers and rounded up: the product with one is too large by less
/// than what is missing from a quotient to the next whole number.
void set_reciprocals(DeviceScale& on_device, std::uint32_t divisor) {
  __extension__ using Product = unsigned __int128;
  const auto bits = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
  on_device.reciprocal = static_cast<std::uint64_t>((Product{1} << (63 + bits)) / divisor + 1);
  on_device.shift = bits - 1;
  on_device.small_reciprocal = divisor > 255 ? 0 : (1U << 16) / divisor + 1;
}

}  // namespace

DeviceScale device_scale(const Scale& scale) {
  DeviceScale on_device;
  on_device.factor = scale.factor;
  on_device.divisor = scale.divisor;
  on_device.multiplies = scale.factor != 1;
  on_device.divides = scale.divisor != 1;
  if (!on_device.divides) return on_device;
  set_reciprocals(on_device, scale.divisor);
  if (std::has_single_bit(scale.divisor) && !on_device.multiplies) {
    // The reciprocal is a number of the same type, and both results are the nearest to the same.
    on_device.factor = 1.0 / on_device.divisor;
    on_device.multiplies = true;
    on_device.divides = false;
  }
  return on_device;
}

}  // namespace elastic::kernels::device
