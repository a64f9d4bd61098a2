#include "collectives/kernels/device/table_slots.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace elastic::kernels::device {

namespace {

/// Few sizes, so that slots serve plans that differ by some tensors.
constexpr std::size_t kLeastBytes = std::size_t{64} << 10;

/// While any thread captures a stream CUDA forbids what might depend on what is captured. Events
/// and memory of slots do not: a launch that is captured uses none.
class Uncaptured {
 public:
  Uncaptured() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  Uncaptured(const Uncaptured&) = delete;
  Uncaptured& operator=(const Uncaptured&) = delete;
  ~Uncaptured() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then the one from before
};

}  // namespace

TableSlot::~TableSlot() {
  if (released_ == nullptr) return;
  static_cast<void>(cudaEventSynchronize(released_));
  static_cast<void>(cudaEventDestroy(released_));
}

cudaError_t TableSlot::allocate(std::size_t bytes) {
  bytes_ = std::bit_ceil(std::max(bytes, kLeastBytes));
  void* memory = nullptr;
  cudaError_t error = cudaHostAlloc(&memory, bytes_, cudaHostAllocDefault);
  if (error != cudaSuccess) return error;
  host_.reset(memory);
  error = cudaMalloc(&memory, bytes_);
  if (error != cudaSuccess) return error;
  device_.reset(memory);
  return cudaEventCreateWithFlags(&released_, cudaEventDisableTiming);
}

cudaError_t TableSlot::release_after(cudaStream_t stream) {
  return cudaEventRecord(released_, stream);
}

cudaError_t TableSlots::add(std::size_t bytes) {
  auto slot = std::make_unique<TableSlot>();
  const cudaError_t error = slot->allocate(bytes);
  if (error == cudaSuccess) slots_.push_back(std::move(slot));
  return error;
}

cudaError_t TableSlots::find(std::size_t bytes, TableSlot*& slot) {
  const Uncaptured uncaptured;
  const auto fits = [bytes](const auto& one) { return one->bytes() >= bytes && one->is_free(); };
  auto found = std::ranges::find_if(slots_, fits);
  if (found == slots_.end()) {
    const cudaError_t error = add(bytes);
    if (error != cudaSuccess) return error;
    found = slots_.end() - 1;
  }
  slot = found->get();
  return cudaSuccess;
}

cudaError_t TableSlots::reserve(std::size_t bytes, std::size_t count) {
  const auto large = [bytes](const auto& one) { return one->bytes() >= bytes; };
  auto there = static_cast<std::size_t>(std::ranges::count_if(slots_, large));
  for (; there < count; ++there) {
    const cudaError_t error = add(bytes);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace elastic::kernels::device
