#include "collectives/backend/nccl/memory/shared_device.hpp"

#include <utility>

#include "base/log.hpp"

namespace elastic::collectives::nccl {

namespace {
constexpr unsigned kNonBlockingStream = 1;  // of cuda.h
}  // namespace

Result<std::shared_ptr<SharedDevice>> SharedDevice::open(std::shared_ptr<const device::Cuda> cuda,
                                                         int index, const MakeMover& make_mover,
                                                         NcclMemory registrable) {
  // This StallWatch has nothing to report: the waits for collectives here have deadlines.
  auto device =
      device::CudaDevice::open(std::move(cuda), index, std::make_shared<device::StallWatch>());
  if (!device.ok()) return device.status();
  return std::shared_ptr<SharedDevice>(
      new SharedDevice(std::move(device).value(), make_mover, std::move(registrable)));
}

SharedDevice::SharedDevice(std::shared_ptr<device::CudaDevice> cuda, const MakeMover& make_mover,
                           NcclMemory registrable)
    : cuda_(std::move(cuda)),
      mover_(make_mover(*cuda_)),
      nccl_memory_(std::move(registrable)),
      memory_([this](std::size_t bytes) { return get(bytes); },
              [this](std::byte* memory) { give_back(memory); }) {}

SharedDevice::~SharedDevice() {
  memory_.clear();
  registrable_.clear();
  const device::CurrentContext here = cuda_->enter();
  const auto& api = cuda_->cuda().api();
  for (const auto& [lane, stream] : streams_) {
    if (stream != nullptr) api.stream_destroy(stream);
  }
  if (way_back_ != nullptr) api.stream_destroy(way_back_);
  if (packing_ != nullptr) api.stream_destroy(packing_);
}

Result<void*> SharedDevice::stream(std::size_t lane) {
  const MutexLock lock(mutex_);
  return made(streams_[lane]);
}

Result<void*> SharedDevice::way_back() {
  const MutexLock lock(mutex_);
  return made(way_back_);
}

Result<void*> SharedDevice::packing() {
  const MutexLock lock(mutex_);
  return made(packing_);
}

Result<void*> SharedDevice::made(void*& stream) {
  if (stream != nullptr) return stream;
  const device::CurrentContext here = cuda_->enter();
  const device::CudaApi& api = cuda_->cuda().api();
  int lowest = 0;
  int highest = 0;
  Status status = cuda_->outcome("cuCtxGetStreamPriorityRange",
                                 api.context_get_stream_priority_range(&lowest, &highest));
  if (status.ok()) {
    status = cuda_->outcome("cuStreamCreateWithPriority",
                            api.stream_create_with_priority(&stream, kNonBlockingStream, highest));
  }
  if (!status.ok()) return status;
  return stream;
}

Result<device::BlockPool::Block> SharedDevice::lend_registrable(std::size_t lane,
                                                                std::size_t bytes) {
  if (!nccl_memory_.get) return device::BlockPool::Block();
  device::BlockPool* pool = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto get = [this](std::size_t size) { return get_registrable(size); };
    const auto give_back = [this](std::byte* memory) {
      const device::CurrentContext here = cuda_->enter();
      nccl_memory_.give_back(memory);
    };
    constexpr auto kKept = device::BlockPool::Spare::kKept;
    pool = &registrable_.try_emplace(lane, get, give_back, kKept).first->second;
  }
  return lend_from(*pool, bytes);
}

Result<device::BlockPool::Block> SharedDevice::lend(std::size_t bytes, Lack lack) {
  // CUDA may wait for the device before it frees memory: for the operation that is under way.
  if (lack == Lack::kDoesNotMatter) return memory_.lend(bytes, device::BlockPool::Spare::kKept);
  return lend_from(memory_, bytes);
}

Result<device::BlockPool::Block> SharedDevice::lend_from(device::BlockPool& pool,
                                                         std::size_t bytes) {
  auto lent = pool.lend(bytes);
  if (lent.ok()) {
    shortage_.end(bytes);
  } else if (shortage_.begin(bytes)) {
    log::warn(
        "nccl: a collective needs {} bytes of device memory, which are not free: {}. Until they "
        "are, all workers perform such calls through host memory",
        bytes, lent.status().message());
  }
  return lent;
}

Result<std::byte*> SharedDevice::get(std::size_t bytes) const {
  const device::CurrentContext here = cuda_->enter();
  device::CudaApi::DevicePointer memory = 0;
  Status status = cuda_->outcome("cuMemAlloc", cuda_->cuda().api().memory_alloc(&memory, bytes));
  if (!status.ok()) return status;
  return static_cast<std::byte*>(pointer_to(memory));
}

Result<std::byte*> SharedDevice::get_registrable(std::size_t bytes) {
  const device::CurrentContext here = cuda_->enter();
  auto memory = nccl_memory_.get(bytes);
  if (!memory.ok() && memory_.clear()) memory = nccl_memory_.get(bytes);
  return memory;
}

void SharedDevice::give_back(std::byte* memory) const {
  const device::CurrentContext here = cuda_->enter();
  cuda_->cuda().api().memory_free(reinterpret_cast<std::uintptr_t>(memory));
}

Result<std::shared_ptr<SharedDevice>> SharedDevices::open(int index) {
  const MutexLock lock(mutex_);
  auto device = open_locked(index);
  if (device.ok()) last_ = device.value();
  return device;
}

std::shared_ptr<SharedDevice> SharedDevices::expected() {
  const MutexLock lock(mutex_);
  if (last_) return last_;
  if (!cuda_) {
    auto cuda = device::Cuda::load(driver_);
    if (!cuda.ok()) return nullptr;
    cuda_ = std::move(cuda).value();
  }
  int index = 0;
  // The device's number in this program, which CUDA_VISIBLE_DEVICES may change.
  if (cuda_->api().context_get_device(&index) != 0) return nullptr;
  const auto device = open_locked(index);
  return device.ok() ? device.value() : nullptr;
}

Result<std::shared_ptr<SharedDevice>> SharedDevices::open_locked(int index) {
  if (const auto found = opened_.find(index); found != opened_.end()) return found->second;
  if (!cuda_) {
    auto cuda = device::Cuda::load(driver_);
    if (!cuda.ok()) return cuda.status();
    cuda_ = std::move(cuda).value();
  }
  auto device = SharedDevice::open(cuda_, index, make_mover_, registrable_);
  if (!device.ok()) return device.status();
  opened_[index] = device.value();
  return device;
}

}  // namespace elastic::collectives::nccl
