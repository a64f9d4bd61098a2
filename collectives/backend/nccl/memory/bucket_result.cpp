#include "collectives/backend/nccl/memory/bucket_result.hpp"

#include <algorithm>
#include <utility>

namespace elastic::collectives::nccl {

std::size_t extent(std::span<const DeviceTensor> tensors) {
  return tensors.empty() ? 0 : tensors.back().end();
}

Result<std::shared_ptr<BucketResult>> BucketResult::make(std::shared_ptr<SharedDevice> device,
                                                         std::span<const DeviceTensor> tensors,
                                                         std::uint32_t divisor, Memory memory) {
  std::shared_ptr<BucketResult> made(
      new BucketResult(std::move(device), tensors, divisor, memory.bytes));
  if (memory.registered.data() != nullptr) {
    made->memory_ = std::move(memory.registered);
    made->is_registered_ = true;
  } else {
    auto lent = made->device_->lend(made->bytes_, memory.lack);
    if (!lent.ok()) return lent.status();
    made->memory_ = std::move(lent).value();
  }
  made->address_ = reinterpret_cast<std::uintptr_t>(made->memory_.data());
  return made;
}

std::shared_ptr<BucketResult> BucketResult::in_output(std::shared_ptr<SharedDevice> device,
                                                      DeviceTensor tensor, std::uint32_t divisor) {
  tensor.offset = 0;
  std::shared_ptr<BucketResult> made(new BucketResult(std::move(device), {&tensor, 1}, divisor, 0));
  made->address_ = tensor.output;
  made->is_output_ = true;
  return made;
}

BucketResult::BucketResult(std::shared_ptr<SharedDevice> device,
                           std::span<const DeviceTensor> tensors, std::uint32_t divisor,
                           std::size_t bytes)
    : device_(std::move(device)),
      tensors_(tensors.begin(), tensors.end()),
      divisor_(divisor),
      bytes_(std::max(extent(tensors), bytes)) {}

Result<void*> BucketResult::begin_unpack() {
  const Result<void*> via = device_->way_back();
  if (!via.ok()) return via;
  const bool is_there = is_output_ && divisor_ == 1;
  if (bytes_ == 0 || is_there) return static_cast<void*>(nullptr);
  device::CudaDevice& cuda = *device_->cuda();
  const device::CurrentContext here = cuda.enter();
  Status status = device_->mover().unpack(tensors_, address(), divisor_, via.value());
  if (!status.ok()) return status;
  if (!is_registered_) return via;
  // The ranks use registered blocks in the same order: none may be free earlier on some ranks.
  status =
      cuda.outcome("the result of a collective", cuda.cuda().api().stream_synchronize(via.value()));
  if (!status.ok()) return status;
  return static_cast<void*>(nullptr);
}

}  // namespace elastic::collectives::nccl
