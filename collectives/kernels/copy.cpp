#include "collectives/kernels/copy.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/kernels/copy.cpp"
#include <hwy/foreach_target.h>

#include "collectives/kernels/elements_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace elastic::kernels::HWY_NAMESPACE {

/// Copies by non-temporal stores.
void stream_copy(std::byte* into, const std::byte* from, std::size_t bytes) {
  const auto copy_part = [&](std::size_t begin, std::size_t end) {
    std::memcpy(into + begin, from + begin, end - begin);
  };
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t vector = hn::Lanes(d);
  std::size_t done = std::min(bytes_to_multiple_of(vector, into), bytes);
  copy_part(0, done);
  for (; bytes - done >= vector; done += vector) {
    store<std::uint8_t, Store::kNonTemporal>(d, load<std::uint8_t>(d, from + done), into + done);
  }
  copy_part(done, bytes);
  hwy::FlushStream();
}

}  // namespace elastic::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elastic::kernels {

HWY_EXPORT(stream_copy);

void copy(std::byte* into, const std::byte* from, std::size_t bytes, Store store) {
  if (bytes == 0) return;  // Then the addresses may be null, which memcpy may not be given.
  if (store == Store::kTemporal) {
    std::memcpy(into, from, bytes);
  } else {
    HWY_DYNAMIC_DISPATCH(stream_copy)(into, from, bytes);
  }
}

}  // namespace elastic::kernels
#endif
