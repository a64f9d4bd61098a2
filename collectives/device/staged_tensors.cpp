#include "collectives/device/staged_tensors.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "collectives/device/arrivals.hpp"
#include "collectives/device/placement.hpp"

namespace elastic::device {

namespace {

// From cuda.h: a waiting thread sleeps, and no time is recorded.
constexpr unsigned kSleepUntilEvent = 1 | 2;
/// For tensors in a block: a cache line, and good for copies.
constexpr std::size_t kAlignment = 256;
/// For messages.
constexpr const char* kQueued = "what was queued before the call, or a copy of its tensors";

constexpr std::size_t aligned(std::size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

CudaApi::DevicePointer device_pointer(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

std::size_t staged_bytes(const ConstTensorView& tensor) {
  return on_device(tensor) ? tensor.bytes() : 0;
}

}  // namespace

Result<std::shared_ptr<StagedTensors>> StagedTensors::begin(std::shared_ptr<CudaDevice> device,
                                                            Arrivals& arrivals, std::string call,
                                                            std::span<const ConstTensorView> inputs,
                                                            std::span<const TensorView> outputs,
                                                            CudaStream stream, Fetch when) {
  const CurrentContext here = device->enter();
  // First: what follows a capture must not do.
  if (Status status = device->check(stream); !status.ok()) return status.within(call);
  std::shared_ptr<StagedTensors> staged(
      new StagedTensors(std::move(device), arrivals, std::move(call), stream, when));
  staged->lay_out(inputs, outputs);
  Status status = staged->make_event();
  if (status.ok() && when == Fetch::kAtOnce) status = staged->take_block();
  if (!status.ok()) return status.within(staged->call_);
  return staged;
}

StagedTensors::StagedTensors(std::shared_ptr<CudaDevice> device, Arrivals& arrivals,
                             std::string call, CudaStream stream, Fetch when)
    : device_(std::move(device)),
      arrivals_(arrivals),
      call_(std::move(call)),
      stream_(stream),
      when_(when),
      fetched_(when == Fetch::kAtOnce) {}

void StagedTensors::lay_out(std::span<const ConstTensorView> inputs,
                            std::span<const TensorView> outputs) {
  tensors_.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ConstTensorView& input = inputs[i];
    const TensorView& output = outputs[i];
    StagedTensor& tensor = tensors_.emplace_back(StagedTensor{input, output, input, output});
    if (on_device(input)) tensor.input = {nullptr, input.count, input.dtype, {}};
    if (on_device(output)) tensor.output = {nullptr, output.count, output.dtype, {}};
    tensor.offset = aligned(block_bytes_);
    const std::size_t bytes = std::max(staged_bytes(input), staged_bytes(output));
    if (bytes > 0) block_bytes_ = tensor.offset + bytes;
  }
}

Status StagedTensors::make_event() {
  return device_->outcome("cuEventCreate",
                          device_->cuda().api().event_create(&event_, kSleepUntilEvent));
}

Status StagedTensors::take_block() {
  if (has_room_) return {};
  Result<BlockPool::Block> block = device_->pinned().lend(block_bytes_);
  if (!block.ok()) return block.status();
  block_ = std::move(block).value();
  for (StagedTensor& tensor : tensors_) {
    std::byte* const place = block_.data() + tensor.offset;
    if (staged_bytes(tensor.given_input) > 0) tensor.input.data = place;
    if (staged_bytes(tensor.given_output) > 0) tensor.output.data = place;
  }
  has_room_ = true;
  return {};
}

StagedTensors::~StagedTensors() {
  if (event_ == nullptr) return;
  const CurrentContext here = device_->enter();
  const CudaApi& api = device_->cuda().api();
  if (unfinished_) api.stream_synchronize(*unfinished_);
  api.event_destroy(event_);
}

std::vector<ConstTensorView> StagedTensors::inputs() const {
  std::vector<ConstTensorView> all;
  all.reserve(tensors_.size());
  for (const StagedTensor& tensor : tensors_) all.push_back(tensor.input);
  return all;
}

std::vector<TensorView> StagedTensors::outputs() const {
  std::vector<TensorView> all;
  all.reserve(tensors_.size());
  for (const StagedTensor& tensor : tensors_) all.push_back(tensor.output);
  return all;
}

Status StagedTensors::wait_for_stream() {
  const CurrentContext here = device_->enter();
  return wait_behind(stream_.handle).within(call_);
}

/// The copies go over the program's stream, which waits anyway: on ours they would come after those
/// of calls whose streams are not there yet.
Status StagedTensors::read() {
  const CurrentContext here = device_->enter();
  Status status;
  if (when_ == Fetch::kAtOnce) status = queue_inputs(stream_.handle);
  if (status.ok()) status = wait_behind(stream_.handle);
  return status.within(call_);
}

/// The copies go over our stream: what the program computes next does not wait for them.
Status StagedTensors::start() {
  const CurrentContext here = device_->enter();
  Status status = record(stream_.handle);
  if (when_ == Fetch::kAtOnce) {
    void* const via = device_->to_host();
    if (status.ok()) {
      status = device_->outcome("cuStreamWaitEvent",
                                device_->cuda().api().stream_wait_event(via, event_, 0));
    }
    if (status.ok()) status = queue_inputs(via);
    if (status.ok()) status = record(via);
  }
  return status.within(call_);
}

std::optional<Status> StagedTensors::arrival() const {
  const MutexLock lock(mutex_);
  return arrival_;
}

void StagedTensors::when_arrived(std::function<void()> then) {
  arrivals_.add(shared_from_this(), std::move(then));
}

Status StagedTensors::wait_for_arrival() {
  const CurrentContext here = device_->enter();
  Status status = wait_for_event().within(call_);
  const MutexLock lock(mutex_);
  arrival_ = status;
  return status;
}

Status StagedTensors::make_room() {
  return take_block().within(call_);
}

/// Work that was queued before the call is done by now.
Status StagedTensors::fetch() {
  if (fetched_) return {};
  const CurrentContext here = device_->enter();
  Status status = take_block();
  if (status.ok()) status = queue_inputs(device_->to_host());
  if (status.ok()) status = wait_behind(device_->to_host());
  fetched_ = status.ok();
  return status.within(call_);
}

Status StagedTensors::send_back(std::size_t bytes) {
  return send_back(std::vector<std::size_t>(tensors_.size(), bytes));
}

Status StagedTensors::send_back(const std::vector<std::size_t>& bytes) {
  if (back_) return *back_;
  const CurrentContext here = device_->enter();
  void* const via = device_->to_device();
  Status status = queue_results(via, bytes);
  if (status.ok() && unfinished_) status = record(via);
  return status.within(call_);
}

void StagedTensors::are_coming(void* stream, std::shared_ptr<void> source) {
  const CurrentContext here = device_->enter();
  unfinished_ = stream;
  source_ = std::move(source);
  back_ = record(stream).within(call_);
}

Status StagedTensors::wait_until_back() {
  if (!unfinished_) return {};
  const CurrentContext here = device_->enter();
  Status status = wait_for_event().within(call_);
  source_.reset();
  return status;
}

void StagedTensors::have_landed() {
  unfinished_.reset();
  source_.reset();
  block_ = {};
}

std::optional<Status> StagedTensors::look_whether_back() const {
  if (!unfinished_) return Status();
  const CurrentContext here = device_->enter();
  const int error = device_->cuda().api().event_query(event_);
  if (error == CudaApi::kNotReady) return std::nullopt;
  return device_->outcome(kQueued, error).within(call_);
}

Status StagedTensors::put_behind(CudaStream stream) const {
  const CurrentContext here = device_->enter();
  Status status = device_->check(stream);
  if (status.ok()) {
    status = device_->outcome("cuStreamWaitEvent",
                              device_->cuda().api().stream_wait_event(stream.handle, event_, 0));
  }
  return status.within(call_);
}

Status StagedTensors::queue_inputs(void* via) {
  for (const StagedTensor& tensor : tensors_) {
    const std::size_t bytes = staged_bytes(tensor.given_input);
    if (bytes == 0) continue;
    unfinished_ = via;
    Status status = device_->outcome(
        "cuMemcpyDtoHAsync",
        device_->cuda().api().copy_to_host(block_.data() + tensor.offset,
                                           device_pointer(tensor.given_input.data), bytes, via));
    if (!status.ok()) return status;
  }
  return {};
}

Status StagedTensors::queue_results(void* via, const std::vector<std::size_t>& at_most) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const StagedTensor& tensor = tensors_[i];
    const std::size_t bytes = std::min(staged_bytes(tensor.given_output), at_most[i]);
    if (bytes == 0) continue;
    unfinished_ = via;
    Status status = device_->outcome(
        "cuMemcpyHtoDAsync",
        device_->cuda().api().copy_to_device(device_pointer(tensor.given_output.data),
                                             block_.data() + tensor.offset, bytes, via));
    if (!status.ok()) return status;
  }
  return {};
}

/// Puts our event behind what is queued on `stream`.
Status StagedTensors::record(void* stream) {
  return device_->outcome("cuEventRecord", device_->cuda().api().event_record(event_, stream));
}

Status StagedTensors::wait_for_event() {
  const int error = device_->wait_for(event_, call_);
  unfinished_.reset();
  return device_->outcome(kQueued, error);
}

Status StagedTensors::wait_behind(void* stream) {
  Status status = record(stream);
  return status.ok() ? wait_for_event() : status;
}

}  // namespace elastic::device
