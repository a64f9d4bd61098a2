#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "collectives/backend/nccl/bucket_mover.hpp"
#include "collectives/kernels/device/pack_parameters.hpp"
#include "collectives/kernels/device/packer.hpp"

namespace elastic::collectives::nccl {

namespace {

using kernels::device::Direction;
using kernels::device::PackRequest;

/// The first of `tensors` that lie one behind another, without gaps, and are of one type: what one
/// kernel moves.
std::span<const DeviceTensor> first_row(std::span<const DeviceTensor> tensors) {
  std::size_t n = 1;
  while (n < tensors.size() && tensors[n].dtype == tensors[n - 1].dtype &&
         tensors[n].offset == tensors[n - 1].offset + tensors[n - 1].bytes()) {
    ++n;
  }
  return tensors.first(n);
}

/// By our kernels, which also divide; what is one tensor and only copied, by the driver.
class KernelMover final : public BucketMover {
 public:
  explicit KernelMover(device::CudaDevice& device) : copies_(device) {}

  Status pack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, void* stream) override {
    return in_rows(tensors, [&](std::span<const DeviceTensor> row) {
      if (row.size() == 1) return copies_.pack(row, bucket, stream);
      const auto moved = move(row, Direction::kPack, bucket, 1, stream);
      return moved ? *moved : copies_.pack(row, bucket, stream);
    });
  }
  Status unpack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, std::uint32_t divisor,
                void* stream) override {
    return in_rows(tensors, [&](std::span<const DeviceTensor> row) {
      if (row.size() == 1 && divisor == 1) return copies_.unpack(row, bucket, divisor, stream);
      const auto moved = move(row, Direction::kUnpack, bucket, divisor, stream);
      return moved ? *moved : copies_.unpack(row, bucket, divisor, stream);
    });
  }

 private:
  template <typename Move>
  static Status in_rows(std::span<const DeviceTensor> tensors, const Move& move) {
    while (!tensors.empty()) {
      const std::span<const DeviceTensor> row = first_row(tensors);
      if (Status status = move(row); !status.ok()) return status;
      tensors = tensors.subspan(row.size());
    }
    return {};
  }

  /// Nothing, where no kernel can: tensors overlap.
  std::optional<Status> move(std::span<const DeviceTensor> row, Direction direction,
                             std::uint64_t bucket, std::uint32_t divisor, void* stream) {
    std::vector<kernels::device::TensorRange> ranges;
    for (const DeviceTensor& tensor : row) {
      const std::uint64_t at = direction == Direction::kPack ? tensor.input : tensor.output;
      ranges.push_back({pointer_to(at), tensor.count});
    }
    PackRequest request;
    request.direction = direction;
    request.tensor_dtype = row.front().dtype;
    request.bucket_dtype = row.front().dtype;
    request.tensors = ranges;
    request.bucket = pointer_to(bucket + row.front().offset);
    request.scale.divisor = divisor;
    if (!kernels::device::invalid_request(request).empty()) return std::nullopt;
    const auto plan = kernels::device::pack_plan(request);
    const std::lock_guard<std::mutex> lock(mutex_);
    const cudaError_t error = packer_.launch(plan, static_cast<cudaStream_t>(stream));
    if (error == cudaSuccess) return Status();
    return Status(Code::kUnavailable,
                  std::string("a kernel that packs tensors: ") + cudaGetErrorString(error));
  }

  CopyMover copies_;
  std::mutex mutex_;  // lanes share a device
  kernels::device::Packer packer_;
};

}  // namespace

std::unique_ptr<BucketMover> make_mover(device::CudaDevice& device) {
  const device::CurrentContext here = device.enter();
  const cudaError_t error = kernels::device::load_pack(DType::kF32, DType::kF32, true, false);
  if (error == cudaSuccess) return std::make_unique<KernelMover>(device);
  log::get().info("nccl: tensors are packed by copies, as the kernels cannot be loaded: {}",
                  cudaGetErrorString(error));
  return std::make_unique<CopyMover>(device);
}

}  // namespace elastic::collectives::nccl
