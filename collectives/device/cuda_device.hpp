#pragma once

#include <memory>
#include <string>

#include "base/status.hpp"
#include "collectives/device/block_pool.hpp"
#include "collectives/device/cuda.hpp"
#include "collectives/device/stall_watch.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

/// A device that tensors lie on, in its primary context, which is that of CUDA's runtime; two
/// streams of ours, which wait for none of the program's unless told to; pinned memory.
///
/// Any thread.
class CudaDevice {
 public:
  /// kInvalidArgument where there is no such device. `watch` hears of all that wait for it.
  static Result<std::shared_ptr<CudaDevice>> open(std::shared_ptr<const Cuda> cuda, int index,
                                                  std::shared_ptr<StallWatch> watch);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const Cuda& cuda() const { return *cuda_; }
  /// "GPU-" and what no other device has, as nvidia-smi -L says it; empty where CUDA does not tell.
  std::string id() const;
  /// "NVIDIA A100-SXM4-40GB"; empty where CUDA does not tell.
  std::string name() const;
  /// Whether it is an instance of a GPU that is partitioned (MIG): " MIG 1g.5gb" ends the name of
  /// one.
  bool is_mig_instance() const { return name().find(" MIG ") != std::string::npos; }
  /// For what a thread calls while the result lives.
  CurrentContext enter() const { return {*cuda_, context_}; }
  /// For what this thread calls from now on.
  Status select() const;
  /// The result of `call`, with the device's name.
  Status outcome(const char* call, int error) const;
  /// Until the device has come to `event`, however long that takes; returns what CUDA does. `call`
  /// is what waits, for a warning. Within `enter`.
  int wait_for(void* event, const std::string& call) const;

  /// Copies to the host go over one stream, those to the device over another: a copy to the host
  /// waits for what computes its tensor, and results must not.
  void* to_host() const { return to_host_; }
  void* to_device() const { return to_device_; }
  BlockPool& pinned() { return pinned_; }

  /// kInvalidArgument where the program's stream cannot be waited for. Within `enter`.
  Status check(const CudaStream& stream) const;

 private:
  CudaDevice(std::shared_ptr<const Cuda> cuda, int index, int handle, void* context,
             std::shared_ptr<StallWatch> watch);
  Status make_streams();
  Result<std::byte*> get_pinned(std::size_t bytes) const;
  void give_back_pinned(std::byte* memory) const;

  const std::shared_ptr<const Cuda> cuda_;
  const int index_;
  const int handle_;
  void* const context_;
  const std::shared_ptr<StallWatch> watch_;
  void* to_host_ = nullptr;
  void* to_device_ = nullptr;
  BlockPool pinned_;
};

}  // namespace elastic::device
