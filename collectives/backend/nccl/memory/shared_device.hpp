#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/backend/nccl/memory/bucket_mover.hpp"
#include "collectives/backend/nccl/memory/device_turns.hpp"
#include "collectives/backend/nccl/memory/memory_shortage.hpp"
#include "collectives/backend/nccl/memory/nccl_memory.hpp"
#include "collectives/device/block_pool.hpp"
#include "collectives/device/cuda_device.hpp"

namespace elastic::collectives::nccl {

/// A CUDA device that the backends of all lanes and views of a worker share.
///
/// Any thread.
class SharedDevice {
 public:
  static Result<std::shared_ptr<SharedDevice>> open(std::shared_ptr<const device::Cuda> cuda,
                                                    int index, const MakeMover& make_mover,
                                                    NcclMemory registrable);
  ~SharedDevice();
  SharedDevice(const SharedDevice&) = delete;
  SharedDevice& operator=(const SharedDevice&) = delete;

  const std::shared_ptr<device::CudaDevice>& cuda() const { return cuda_; }
  /// The turn to run a communicator's work on the device. With work of two communicators at once,
  /// in different orders on two ranks, the ranks would wait for each other for ever.
  /// Waits for it, at most so long.
  DeviceTurns::Turn take_turn(Duration most) { return turns_.take(most); }
  /// Whether a thread waits for it.
  bool is_turn_awaited() { return turns_.are_awaited(); }

  /// The CUDA stream of a lane, with the highest priority: the ranks' kernels of NCCL wait for each
  /// other, so one that waits behind a program's kernels delays all ranks. Lives as long as this
  /// object.
  Result<void*> stream(std::size_t lane);
  /// The CUDA stream over which results go to their tensors. Lives as long.
  Result<void*> way_back();
  /// The CUDA stream that packs buckets for operations to come. Lives as long.
  Result<void*> packing();
  /// A lack of memory sends an operation through host memory, or it just begins later.
  enum class Lack : std::uint8_t { kMatters, kDoesNotMatter };
  /// Lends device memory. Returned blocks are kept and lent again, or freed where memory is short.
  /// Warns of a shortage when it begins, if it matters.
  Result<device::BlockPool::Block> lend(std::size_t bytes, Lack lack = Lack::kMatters);
  /// Lends memory that NCCL can register, from a pool of the lane's own, which frees nothing: a
  /// communicator may still refer to it. Otherwise like `lend`. Empty if NCCL cannot register
  /// memory.
  Result<device::BlockPool::Block> lend_registrable(std::size_t lane, std::size_t bytes);
  BucketMover& mover() { return *mover_; }

 private:
  SharedDevice(std::shared_ptr<device::CudaDevice> cuda, const MakeMover& make_mover,
               NcclMemory registrable);
  Result<void*> made(void*& stream) ELASTIC_REQUIRES(mutex_);
  Result<device::BlockPool::Block> lend_from(device::BlockPool& pool, std::size_t bytes);
  Result<std::byte*> get(std::size_t bytes) const;
  Result<std::byte*> get_registrable(std::size_t bytes);
  void give_back(std::byte* memory) const;

  const std::shared_ptr<device::CudaDevice> cuda_;
  const std::unique_ptr<BucketMover> mover_;
  const NcclMemory nccl_memory_;
  device::BlockPool memory_;
  MemoryShortage shortage_;
  DeviceTurns turns_;
  Mutex mutex_;
  std::map<std::size_t, void*> streams_ ELASTIC_GUARDED_BY(mutex_);  // by lane
  void* way_back_ ELASTIC_GUARDED_BY(mutex_) = nullptr;
  void* packing_ ELASTIC_GUARDED_BY(mutex_) = nullptr;
  std::map<std::size_t, device::BlockPool> registrable_ ELASTIC_GUARDED_BY(mutex_);  // by lane
};

/// The devices that a worker has used, each opened at its first use.
///
/// Any thread.
class SharedDevices {
 public:
  /// `driver`: the file of CUDA's driver, as for CudaDriver::find.
  explicit SharedDevices(std::string driver = "", MakeMover make = &make_mover,
                         NcclMemory registrable = {})
      : driver_(std::move(driver)),
        make_mover_(std::move(make)),
        registrable_(std::move(registrable)) {}
  Result<std::shared_ptr<SharedDevice>> open(int index);
  /// The device on which this worker's next tensors most likely are: that of the last ones, or else
  /// the current device of the calling thread. Null if neither is known.
  std::shared_ptr<SharedDevice> expected();

 private:
  Result<std::shared_ptr<SharedDevice>> open_locked(int index) ELASTIC_REQUIRES(mutex_);

  const std::string driver_;
  const MakeMover make_mover_;
  const NcclMemory registrable_;
  Mutex mutex_;
  std::shared_ptr<SharedDevice> last_ ELASTIC_GUARDED_BY(mutex_);
  std::shared_ptr<const device::Cuda> cuda_ ELASTIC_GUARDED_BY(mutex_);
  std::map<int, std::shared_ptr<SharedDevice>> opened_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::collectives::nccl
