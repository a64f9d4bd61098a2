#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "elastic/cuda_stream.hpp"
#include "elastic/memory.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// The CUDA device that this rank of a benchmark has its tensors on, current for the thread that
/// opened it, and a stream of it. By CUDA's driver, which is looked for at run time: no build needs
/// CUDA for that. Belongs to the main thread, and outlives what it allocates. Its functions throw
/// elastic::Error(kUnavailable) for what CUDA reports.
class RankDevice {
 public:
  /// kUnavailable says what is missing where no device can be used.
  static Status check();
  /// Where `local_ranks` are more than this host has devices, they share them, and NCCL takes that
  /// only from ranks that say they are on hosts of their own (NCCL_HOSTID). This one does so,
  /// unless it says something already. Before there are other threads.
  static void be_own_host_to_nccl(int local_ranks);
  /// Ranks on one host take its devices in turn. All of `local_ranks` share them.
  static Result<std::unique_ptr<RankDevice>> open(int local_rank, int local_ranks);
  ~RankDevice();
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;

  Device device() const;
  CudaStream stream() const;
  /// Which one it is among those of this host, whatever numbers processes give them.
  const std::string& identity() const;
  /// "2 devices", or "4 ranks on 1 device", for people: on this host.
  std::string text() const;

  /// Memory of the device, whose content is undefined. Given back when destroyed.
  Memory allocate(std::size_t bytes) const;
  /// Copies between tensors here and on the host, of equal sizes. Returns when that is done.
  void copy(ConstTensorView from, TensorView to) const;
  /// Waits for what is queued on the stream.
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
