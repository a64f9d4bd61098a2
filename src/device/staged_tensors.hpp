#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_device.hpp"
#include "device/staged.hpp"
#include "elastic/cuda_stream.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

class Arrivals;

/// What a caller does until its tensors are in host memory. Where it waits, they are copied on its
/// own stream: on ours the copies would come after those of others whose streams are not there yet.
enum class Caller { kWaits, kGoesOn };

/// The tensors of one allreduce, some or all of them on a CUDA device: those go through pinned
/// memory. For the engine the call is one in place, on host memory: the device's tensors stay as
/// they are until the results are sent back.
///
/// Any thread, one at a time but for `arrival`.
class StagedTensors : public Staged, public std::enable_shared_from_this<StagedTensors> {
 public:
  /// Has the device copy the inputs, after what is queued on `stream`, and does not wait for it.
  /// `inputs` and `outputs` correspond one to one, and lie on `device` or in host memory.
  static Result<std::shared_ptr<StagedTensors>> begin(std::shared_ptr<CudaDevice> device,
                                                      Arrivals& arrivals,
                                                      std::span<const ConstTensorView> inputs,
                                                      std::span<const TensorView> outputs,
                                                      CudaStream stream, Caller caller);
  /// Waits for copies that are under way: they read and write memory that is lent again.
  ~StagedTensors() override;
  StagedTensors(const StagedTensors&) = delete;
  StagedTensors& operator=(const StagedTensors&) = delete;

  /// As the program calls them, for warnings. Before anybody waits.
  void set_name(std::string_view name) { call_ = "allreduce '" + std::string(name) + "'"; }

  /// Where the operation finds its inputs and leaves its results.
  const std::vector<ConstTensorView>& inputs() const { return host_inputs_; }
  const std::vector<TensorView>& outputs() const { return host_outputs_; }

  /// Until the inputs are in host memory.
  Status wait_for_arrival();

  std::optional<Status> arrival() const override;
  void when_arrived(std::function<void()> then) override;
  Status send_back() override;
  Status wait_until_back() override;

 private:
  struct Copy {
    CudaApi::DevicePointer input = 0;
    CudaApi::DevicePointer output = 0;
    std::byte* host = nullptr;
    std::size_t bytes = 0;
  };

  StagedTensors(std::shared_ptr<CudaDevice> device, Arrivals& arrivals)
      : device_(std::move(device)), arrivals_(arrivals) {}
  Status lay_out(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs);
  Status fetch(CudaStream stream, Caller caller);
  Status wait_for_event();

  const std::shared_ptr<CudaDevice> device_;
  Arrivals& arrivals_;
  PinnedPool::Block block_;
  std::vector<Copy> copies_;  // what is not empty
  std::vector<ConstTensorView> host_inputs_;
  std::vector<TensorView> host_outputs_;
  void* event_ = nullptr;            // behind the copies that were queued last
  std::optional<void*> unfinished_;  // the stream that may have copies of ours
  std::string call_;                 // what waits

  mutable std::mutex mutex_;
  std::optional<Status> arrival_;
};

}  // namespace elastic::device
