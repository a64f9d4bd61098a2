#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/device/cuda_device.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

class Arrivals;

/// When the inputs of tensors on devices are copied to host memory.
enum class Fetch {
  kAtOnce,    ///< as soon as the device has made them
  kOnDemand,  ///< by `fetch`: the backend of the operation may take them in place
};

/// The tensor that an operation reads, and the one that it writes. One or both may lie on a device,
/// and they need not be equally large.
struct StagedTensor {
  ConstTensorView given_input;  ///< as the program gave them
  TensorView given_output;
  /// Where an operation in host memory finds its input and leaves its result. If both lie on the
  /// device, that is the same memory: a rank that has the result does not need the input any more.
  /// With kOnDemand it has no address before `make_room`.
  ConstTensorView input;
  TensorView output;
  std::size_t offset = 0;  ///< in the pinned memory
};

/// The tensors of one call, at least one of them on a CUDA device: those go through pinned memory.
/// The device's tensors stay as they are until the results are sent back. With Fetch::kOnDemand
/// they go through pinned memory only if the backend asks for it.
///
/// A blocking call waits for its inputs with `read` or `wait_for_stream`. An asynchronous call has
/// `start`, and `arrival` says later that they are there.
///
/// Any thread, one at a time but for `arrival`. The errors begin with the name of the call.
class StagedTensors : public std::enable_shared_from_this<StagedTensors> {
 public:
  /// Nothing is copied yet. `inputs` and `outputs` correspond one to one, and lie on `device` or in
  /// host memory. `call` is the name of the call in messages.
  static Result<std::shared_ptr<StagedTensors>> begin(std::shared_ptr<CudaDevice> device,
                                                      Arrivals& arrivals, std::string call,
                                                      std::span<const ConstTensorView> inputs,
                                                      std::span<const TensorView> outputs,
                                                      CudaStream stream, Fetch when);
  /// Waits for copies that are under way: they read and write memory that is lent again.
  ~StagedTensors();
  StagedTensors(const StagedTensors&) = delete;
  StagedTensors& operator=(const StagedTensors&) = delete;

  Fetch when() const { return when_; }
  std::span<const StagedTensor> tensors() const { return tensors_; }
  /// The addresses in host memory of all tensors.
  std::vector<ConstTensorView> inputs() const;
  std::vector<TensorView> outputs() const;

  /// Waits until what was queued on the stream is done: the device's tensors are the call's then.
  Status wait_for_stream();
  /// The same, and with kAtOnce the inputs are in host memory.
  Status read();

  /// Has the device do what `read` does, and does not wait for it. Once.
  Status start();
  /// Whether what was started is done, or why it will not be; nothing while it is under way. Any
  /// thread.
  std::optional<Status> arrival() const;
  /// Calls `then` once `arrival` has something to say, from some thread. Once.
  void when_arrived(std::function<void()> then);
  /// Waits for what was started.
  Status wait_for_arrival();

  /// With kOnDemand: takes the host memory that the tensors go through.
  Status make_room();
  /// With kOnDemand: `make_room`, and waits until the inputs are there. Nothing, where they have
  /// been brought.
  Status fetch();

  /// The results lie in the tensors already, or cannot be brought there: what `send_back` says.
  void are_back(Status outcome) { back_ = std::move(outcome); }
  /// Work that is queued on `stream` of the same device brings them there, from `source`, which is
  /// kept until then.
  void are_coming(void* stream, std::shared_ptr<void> source);
  const std::optional<Status>& back() const { return back_; }
  /// Begins to copy the results, of each at most the first `bytes`, to the tensors. A failure
  /// leaves the tensors undefined.
  Status send_back(std::size_t bytes = std::numeric_limits<std::size_t>::max());
  /// The same with a number of bytes for each tensor.
  Status send_back(const std::vector<std::size_t>& bytes);
  /// The stream over which results are on their way to the tensors; null if there are none.
  void* way_back() const { return unfinished_.value_or(nullptr); }
  /// Waits until the results are in the tensors.
  Status wait_until_back();
  /// The result of that wait; nothing while they are on their way.
  std::optional<Status> look_whether_back() const;
  /// The results are in the tensors: gives their memory back.
  void have_landed();
  bool is_on_device_of(const StagedTensors& other) const { return device_ == other.device_; }
  /// Work that is queued on `stream` from now on comes after the results. Any thread.
  Status put_behind(CudaStream stream) const;

 private:
  StagedTensors(std::shared_ptr<CudaDevice> device, Arrivals& arrivals, std::string call,
                CudaStream stream, Fetch when);
  void lay_out(std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs);
  Status make_event();
  Status take_block();
  Status queue_inputs(void* via);
  Status queue_results(void* via, const std::vector<std::size_t>& bytes);
  Status record(void* stream);
  Status wait_for_event();
  Status wait_behind(void* stream);

  const std::shared_ptr<CudaDevice> device_;
  Arrivals& arrivals_;
  const std::string call_;
  const CudaStream stream_;
  const Fetch when_;
  std::vector<StagedTensor> tensors_;
  BlockPool::Block block_;
  std::size_t block_bytes_ = 0;
  bool has_room_ = false;
  bool fetched_ = false;
  std::optional<Status> back_;       // of results that others have brought, or could not
  void* event_ = nullptr;            // behind what was queued last
  std::optional<void*> unfinished_;  // the stream that may have copies of ours
  std::shared_ptr<void> source_;     // of the results that come over that stream

  mutable Mutex mutex_;
  std::optional<Status> arrival_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::device
