#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "elastic/allocation.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// The CUDA device of this rank's tensors, and a stream on it. The device is current for the thread
/// that opened it. It uses CUDA's driver, loaded at run time, so that the build does not need CUDA.
/// Owned by the main thread; must outlive its allocations. Its functions throw
/// elastic::Error(kUnavailable) for CUDA's errors.
class RankDevice {
 public:
  /// kUnavailable, with the reason, if this host has no usable device.
  static Status check();
  /// If `local_ranks` exceeds the number of devices, sets NCCL_HOSTID to an id of this rank, unless
  /// it is set: NCCL lets ranks share a device only if they claim to be on different hosts. To be
  /// called before there are other threads.
  static void be_own_host_to_nccl(int local_ranks);
  /// Opens a device of this host. Its `local_ranks` ranks use its devices in turn.
  static Result<std::unique_ptr<RankDevice>> open(int local_rank, int local_ranks);
  ~RankDevice();
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;

  Device device() const;
  CudaStream stream() const;
  /// Identifies the device among those of this host, in all processes.
  const std::string& identity() const;
  /// The use of this host's devices for the output: "2 devices", or "4 ranks on 1 device".
  std::string text() const;

  /// Allocates memory of the device with undefined content. Destroying the result frees it.
  Allocation allocate(std::size_t bytes) const;
  /// Copies between tensors of equal size on this device and on the host. Waits for the end.
  void copy(ConstTensorView from, TensorView to) const;
  /// Waits for the work that is queued on the stream.
  void wait() const;

 private:
  struct Driver;
  RankDevice(std::unique_ptr<Driver> driver, int index, int local_ranks);
  void must(const char* call, int error) const;

  const std::unique_ptr<Driver> driver_;
  const int index_;
  const int local_ranks_;
  std::string identity_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace elastic::bench
