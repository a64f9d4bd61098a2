#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/device/cuda_device.hpp"
#include "collectives/device/staged.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

class Arrivals;

/// The caller's behaviour until its tensors are in host memory. Where it waits, they are copied on
/// its own stream: on ours the copies would come after those of others whose streams are not there
/// yet.
enum class Caller { kWaits, kGoesOn };

/// The tensors of one allreduce, some or all of them on a CUDA device: those go through pinned
/// memory. For the engine the call is one in place, on host memory: the device's tensors stay as
/// they are until the results are sent back. With Fetch::kOnDemand they go that way only if the
/// engine asks for it.
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
                                                      CudaStream stream, Caller caller,
                                                      Fetch when = Fetch::kAtOnce);
  /// Waits for copies that are under way: they read and write memory that is lent again.
  ~StagedTensors() override;
  StagedTensors(const StagedTensors&) = delete;
  StagedTensors& operator=(const StagedTensors&) = delete;

  /// As the program calls them, for warnings. Before any thread waits.
  void set_name(std::string_view name) { call_ = "allreduce '" + std::string(name) + "'"; }

  /// Until the inputs are where `arrival` says.
  Status wait_for_arrival();

  std::optional<Status> arrival() const override;
  void when_arrived(std::function<void()> then) override;
  Fetch when() const override { return when_; }
  const std::vector<ConstTensorView>& given_inputs() const override { return given_inputs_; }
  const std::vector<TensorView>& given_outputs() const override { return given_outputs_; }
  const std::vector<ConstTensorView>& inputs() const override { return host_inputs_; }
  const std::vector<TensorView>& outputs() const override { return host_outputs_; }
  Status make_room() override;
  Status fetch() override;
  void are_back(Status outcome) override { back_ = std::move(outcome); }
  Status send_back() override;
  Status wait_until_back() override;

 private:
  struct Copy {
    CudaApi::DevicePointer input = 0;
    CudaApi::DevicePointer output = 0;
    std::byte* host = nullptr;
    std::size_t bytes = 0;
    std::size_t tensor = 0;  ///< which it is
    std::size_t offset = 0;  ///< in the block
  };

  StagedTensors(std::shared_ptr<CudaDevice> device, Arrivals& arrivals, Fetch when)
      : device_(std::move(device)), arrivals_(arrivals), when_(when) {}
  void lay_out(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs);
  Status follow(CudaStream stream);
  Status fetch(CudaStream stream, Caller caller);
  Status queue_copies(void* via);
  Status record(void* stream);
  Status wait_for_event();

  const std::shared_ptr<CudaDevice> device_;
  Arrivals& arrivals_;
  const Fetch when_;
  PinnedPool::Block block_;
  std::size_t block_bytes_ = 0;
  bool has_room_ = false;
  bool fetched_ = false;
  std::optional<Status> back_;  // of results that others have brought, or could not
  std::vector<Copy> copies_;    // what is not empty
  std::vector<ConstTensorView> given_inputs_;
  std::vector<TensorView> given_outputs_;
  std::vector<ConstTensorView> host_inputs_;
  std::vector<TensorView> host_outputs_;
  void* event_ = nullptr;            // behind the copies that were queued last
  std::optional<void*> unfinished_;  // the stream that may have copies of ours
  std::string call_;                 // what waits

  mutable std::mutex mutex_;
  std::optional<Status> arrival_;
};

}  // namespace elastic::device
