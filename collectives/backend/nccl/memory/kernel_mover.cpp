#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "collectives/backend/nccl/memory/bucket_mover.hpp"
#include "collectives/kernels/device/pack_parameters.hpp"
#include "collectives/kernels/device/packer.hpp"

namespace elastic::collectives::nccl {

namespace {

using kernels::device::Direction;
using kernels::device::PackRequest;

/// The longest prefix of `tensors` that one kernel can move: no gaps in the bucket, one dtype and
/// one wire dtype.
std::span<const DeviceTensor> first_row(std::span<const DeviceTensor> tensors) {
  std::size_t n = 1;
  while (n < tensors.size() && tensors[n].dtype == tensors[n - 1].dtype &&
         tensors[n].wire == tensors[n - 1].wire && tensors[n].offset == tensors[n - 1].end()) {
    ++n;
  }
  return tensors.first(n);
}

/// Moves tensors by kernels, which also divide and cast; plain copies of one tensor by the driver.
class KernelMover final : public BucketMover {
 public:
  KernelMover(device::CudaDevice& device, bool casts) : copies_(device), casts_(casts) {}

  bool takes(std::span<const DeviceTensor> tensors) const override {
    return casts_ || copies_.takes(tensors);
  }
  Status pack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, void* stream) override {
    return in_rows(tensors, {Direction::kPack, bucket, 1, stream});
  }
  Status unpack(std::span<const DeviceTensor> tensors, std::uint64_t bucket, std::uint32_t divisor,
                void* stream) override {
    return in_rows(tensors, {Direction::kUnpack, bucket, divisor, stream});
  }

 private:
  using Tensors = std::span<const DeviceTensor>;
  struct Way {
    Direction direction = Direction::kPack;
    std::uint64_t bucket = 0;
    std::uint32_t divisor = 1;
    void* stream = nullptr;
  };

  Status in_rows(Tensors tensors, const Way& way) {
    while (!tensors.empty()) {
      const Tensors row = first_row(tensors);
      if (Status status = move_row(row, way); !status.ok()) return status;
      tensors = tensors.subspan(row.size());
    }
    return {};
  }

  Status move_row(Tensors row, const Way& way) {
    const bool is_cast = row.front().is_cast();
    if (row.size() == 1 && way.divisor == 1 && !is_cast) return copy(row, way);
    const auto moved = move(row, way);
    if (moved) return *moved;
    return is_cast ? one_by_one(row, way) : copy(row, way);
  }

  Status copy(Tensors row, const Way& way) {
    if (way.direction == Direction::kPack) return copies_.pack(row, way.bucket, way.stream);
    return copies_.unpack(row, way.bucket, way.divisor, way.stream);
  }

  /// Moves tensors that overlap each other, by one kernel for each.
  Status one_by_one(Tensors row, const Way& way) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto moved = move(row.subspan(i, 1), way);
      if (!moved) return Status(Code::kInternal, "a tensor overlaps memory that is not its own");
      if (!moved->ok()) return *moved;
    }
    return {};
  }

  /// Moves `row` by one kernel. Nothing is returned, and moved, if tensors overlap.
  std::optional<Status> move(Tensors row, const Way& way) {
    const bool packs = way.direction == Direction::kPack;
    std::vector<kernels::device::TensorRange> ranges;
    for (const DeviceTensor& tensor : row) {
      ranges.push_back({pointer_to(packs ? tensor.input : tensor.output), tensor.count});
    }
    const Wire& wire = row.front().wire;
    PackRequest request;
    request.direction = way.direction;
    request.tensor_dtype = row.front().dtype;
    request.bucket_dtype = wire.dtype;
    request.tensors = ranges;
    request.bucket = pointer_to(way.bucket + row.front().offset);
    request.scale.divisor = way.divisor;
    if (row.front().is_cast()) {
      request.scale.factor = packs ? double{wire.scale} : 1 / double{wire.scale};
    }
    if (!kernels::device::invalid_request(request).empty()) return std::nullopt;
    const auto plan = kernels::device::pack_plan(request);
    const MutexLock lock(mutex_);
    const cudaError_t error = packer_.launch(plan, static_cast<cudaStream_t>(way.stream));
    if (error == cudaSuccess) return Status();
    return Status(Code::kUnavailable,
                  std::string("a kernel that packs tensors: ") + cudaGetErrorString(error));
  }

  CopyMover copies_;
  const bool casts_;
  Mutex mutex_;  // lanes share a device
  kernels::device::Packer packer_ ELASTIC_GUARDED_BY(mutex_);
};

/// Loads the kernels that copy, and those that divide an average, before the first operation.
/// Loading them later, after the ranks have agreed to use them, could fail, or wait for the work
/// that NCCL has on the device.
cudaError_t kernels_loaded() {
  cudaError_t error = kernels::device::load_pack(DType::kF32, DType::kF32, true, false);
  for (const DType each : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    if (error == cudaSuccess) error = kernels::device::load_pack(each, each, false, true);
  }
  return error;
}

/// The same for those that cast.
cudaError_t cast_kernels_loaded() {
  for (const DType tensor : {DType::kF32, DType::kF64}) {
    for (const DType half : {DType::kF16, DType::kBF16}) {
      for (const bool unpacks : {false, true}) {
        const cudaError_t error = kernels::device::load_pack(tensor, half, false, unpacks);
        if (error != cudaSuccess) return error;
      }
    }
  }
  return cudaSuccess;
}

}  // namespace

std::unique_ptr<BucketMover> make_mover(device::CudaDevice& device) {
  const device::CurrentContext here = device.enter();
  const cudaError_t error = kernels_loaded();
  if (error == cudaSuccess) {
    return std::make_unique<KernelMover>(device, cast_kernels_loaded() == cudaSuccess);
  }
  log::info("nccl: tensors are packed by copies, as the kernels cannot be loaded: {}",
            cudaGetErrorString(error));
  return std::make_unique<CopyMover>(device);
}

}  // namespace elastic::collectives::nccl
