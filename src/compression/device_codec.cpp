#include "compression/device_codec.hpp"

#include <algorithm>
#include <utility>

namespace elastic::codecs {

using namespace kernels::codec;

namespace {

/// Enough threads for any device to have all its memory's bandwidth; each has several elements
/// then.
constexpr std::uint64_t kMostBlocks = 4096;
constexpr unsigned kWarp = 32;

}  // namespace

Result<std::unique_ptr<DeviceCodec>> DeviceCodec::load(std::shared_ptr<device::CudaDevice> device,
                                                       std::span<const std::byte> image) {
  auto module = device::KernelModule::load(device, image, kKernelNames);
  if (!module.ok()) return module.status();
  return std::unique_ptr<DeviceCodec>(
      new DeviceCodec(std::move(device), std::move(module).value()));
}

template <typename Parameters>
Status DeviceCodec::launch(Kernel kernel, const Parameters& parameters, std::uint64_t blocks,
                           unsigned threads, void* stream) const {
  const auto few = static_cast<unsigned>(std::min(blocks, kMostBlocks));
  return few == 0 ? Status() : module_->launch(index_of(kernel), few, threads, &parameters, stream);
}

template <typename Parameters>
Status DeviceCodec::for_each(Kernel kernel, const Parameters& parameters, std::uint64_t count,
                             void* stream) const {
  return launch(kernel, parameters, (count + kThreads - 1) / kThreads, kThreads, stream);
}

Status DeviceCodec::queue(const EncodeHalf& one, void* stream) const {
  return for_each(Kernel::kEncodeHalf, one, one.count, stream);
}

Status DeviceCodec::queue(const DecodeHalf& one, void* stream) const {
  return for_each(Kernel::kDecodeHalf, one, one.count, stream);
}

Status DeviceCodec::queue(const Divide& one, void* stream) const {
  return for_each(Kernel::kDivide, one, one.count, stream);
}

Status DeviceCodec::queue(const Stage& one, void* stream) const {
  return for_each(Kernel::kStage, one, one.count, stream);
}

Status DeviceCodec::queue(const EncodeInt8& one, void* stream) const {
  const unsigned threads = std::min(kThreads, (one.block + kWarp - 1) / kWarp * kWarp);
  return launch(Kernel::kEncodeInt8, one, blocks_of(one.count, one.block), threads, stream);
}

Status DeviceCodec::queue(const EncodeWhole& one, void* stream) const {
  return for_each(Kernel::kEncodeWhole, one, one.count, stream);
}

Status DeviceCodec::queue(const Clear& one, void* stream) const {
  return for_each(Kernel::kClear, one, one.count, stream);
}

Status DeviceCodec::queue(const Rescale& one, void* stream) const {
  return for_each(Kernel::kRescale, one, one.count, stream);
}

Status DeviceCodec::queue(EncodeTopK one, void* stream) {
  const std::uint64_t parts = parts_of(one.count);
  Status status = selection_.require(device_, sizeof(TopKSelection), "the choice of elements");
  if (status.ok()) {
    status = parts_.require(device_, parts * sizeof(Chosen), "the choice of elements");
  }
  one.selection = selection_.data<TopKSelection>();
  one.parts = parts_.data<Chosen>();
  if (status.ok()) status = launch(Kernel::kBeginTopK, one, 1, kDigits, stream);
  for (one.pass = 0; status.ok() && one.pass < kPasses; ++one.pass) {
    status = for_each(Kernel::kCountDigits, one, one.count, stream);
    if (status.ok()) status = launch(Kernel::kTakeDigit, one, 1, kDigits, stream);
  }
  if (status.ok()) status = launch(Kernel::kCountChosen, one, parts, kThreads, stream);
  if (status.ok()) status = launch(Kernel::kPlaceParts, one, 1, kThreads, stream);
  if (status.ok()) status = launch(Kernel::kWriteChosen, one, parts, kThreads, stream);
  return status;
}

Status DeviceCodec::queue(const AddDense& one, void* stream) const {
  return for_each(Kernel::kAddDense, one, one.count, stream);
}

Status DeviceCodec::queue(const AddTopK& one, void* stream) const {
  return for_each(Kernel::kAddTopK, one, one.sent, stream);
}

}  // namespace elastic::codecs
