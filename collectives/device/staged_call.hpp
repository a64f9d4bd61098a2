#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "collectives/device/cuda_device.hpp"
#include "collectives/device/staged.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

/// The tensors of a blocking call that is no allreduce: one that it reads and one that it writes,
/// which need not be equally large. One or both lie on a CUDA device, and go through pinned memory;
/// with Fetch::kOnDemand only if the engine asks for it.
///
/// One thread at a time.
class StagedCall {
 public:
  /// Nothing is copied yet. `call` says in messages what it is.
  static Result<std::unique_ptr<StagedCall>> begin(std::shared_ptr<CudaDevice> device,
                                                   std::string call, const ConstTensorView& input,
                                                   const TensorView& output, CudaStream stream,
                                                   Fetch when = Fetch::kAtOnce);
  /// Waits for copies that are under way: they read and write memory that is lent again.
  ~StagedCall();
  StagedCall(const StagedCall&) = delete;
  StagedCall& operator=(const StagedCall&) = delete;

  Fetch when() const { return when_; }
  /// As the program gave them.
  const ConstTensorView& given_input() const { return input_; }
  const TensorView& given_output() const { return output_; }
  /// Where the operation finds its input and leaves its result. Where both tensors lie on the
  /// device, that is the same memory: a rank that has the result needs the input no more. With
  /// kOnDemand it has no address before `make_room`.
  const ConstTensorView& input() const { return host_input_; }
  const TensorView& output() const { return host_output_; }

  /// Until what was queued on the stream is done: the device's tensors are the call's then.
  Status wait_for_stream();
  /// The same, and the input is in host memory.
  Status read();
  /// With kOnDemand, after `wait_for_stream`: takes the host memory.
  Status make_room();
  /// `make_room`, and brings the input there. Nothing, where it has been brought.
  Status fetch();
  /// Brings the first `bytes` of the result to the tensor, and waits until they are there. A
  /// failure leaves that undefined.
  Status write(std::size_t bytes);

 private:
  StagedCall(std::shared_ptr<CudaDevice> device, std::string call, const ConstTensorView& input,
             const TensorView& output, CudaStream stream, Fetch when);
  Status make_event();
  Status copy_input(void* via);
  Status wait_behind(void* stream);

  const std::shared_ptr<CudaDevice> device_;
  const std::string call_;
  const ConstTensorView input_;
  const TensorView output_;
  const CudaStream stream_;
  const Fetch when_;
  PinnedPool::Block block_;
  bool has_room_ = false;
  bool fetched_ = false;
  ConstTensorView host_input_;
  TensorView host_output_;
  void* event_ = nullptr;
  std::optional<void*> unfinished_;  // the stream that may have copies of ours
};

}  // namespace elastic::device
