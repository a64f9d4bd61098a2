#include "collectives/backend/nccl/device_allreduce.hpp"

#include <chrono>
#include <sched.h>
#include <thread>
#include <vector>

#include "collectives/backend/nccl/nccl_api.hpp"
#include "collectives/backend/nccl/nccl_types.hpp"

namespace elastic::collectives::nccl {

namespace {

constexpr unsigned kEventFlags = 2;  // of cuda.h: nobody asks when it was
/// Looks at the device before the processor is left to others for a moment, and before it is left
/// to them for longer.
constexpr int kSpins = 100;
constexpr int kYields = 1000;
constexpr Duration kPause = std::chrono::microseconds(20);
constexpr int kLooksPerCheck = 64;

/// Elements of one type that follow each other in the bucket; what lies between two tensors is
/// reduced with them.
struct Run {
  DType dtype = DType::kU8;
  std::size_t offset = 0;
  std::size_t count = 0;
};

std::vector<Run> runs_of(std::span<const DeviceTensor> tensors) {
  std::vector<Run> runs;
  for (const DeviceTensor& tensor : tensors) {
    const DType dtype = tensor.wire.dtype;
    if (runs.empty() || runs.back().dtype != dtype) runs.push_back({dtype, tensor.offset, 0});
    runs.back().count = (tensor.end() - runs.back().offset) / size_of(dtype);
  }
  return runs;
}

/// What `queue` queues is begun together. The group belongs to the thread, and is ended whatever
/// came of it: otherwise all that the thread calls later would be part of it.
template <typename Queue>
ncclResult_t in_group(const Api& api, const Queue& queue) {
  if (const ncclResult_t begun = api.group_start(); begun != ncclSuccess) return begun;
  const ncclResult_t queued = queue();
  const ncclResult_t ended = api.group_end();
  return queued == ncclSuccess ? ended : queued;
}

/// Of the current context.
class Event {
 public:
  explicit Event(const device::CudaApi& api)
      : api_(api), made_(api.event_create(&handle_, kEventFlags)) {}
  ~Event() {
    if (made_ == 0) api_.event_destroy(handle_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  int record(void* stream) { return made_ != 0 ? made_ : api_.event_record(handle_, stream); }
  int query() const { return api_.event_query(handle_); }

 private:
  const device::CudaApi& api_;
  void* handle_ = nullptr;
  const int made_;
};

}  // namespace

Status DeviceAllreduce::run(std::span<const DeviceTensor> tensors, ReduceOp op,
                            std::uint32_t divisor, Duration most,
                            const std::function<Status()>& meanwhile) {
  const Result<void*> stream = device_->stream(lane_);
  if (!stream.ok()) return stream.status();
  stream_ = stream.value();
  auto made = BucketResult::make(device_, stream_, tensors, divisor);
  if (!made.ok()) return made.status();
  result_ = std::move(made).value();
  const TimePoint until =
      Clock::now() + most * (1 + static_cast<Duration::rep>(result_->bytes() >> 30U));

  const device::CurrentContext here = device_->cuda()->enter();
  Status status = launch(op, until, meanwhile);
  if (status.ok()) status = wait(until, meanwhile);
  // What went wrong may be known to the communicator alone.
  return status.ok() ? communicator_.check() : status;
}

void DeviceAllreduce::wait_for_copies() const {
  if (!result_) return;
  const device::CurrentContext here = device_->cuda()->enter();
  // A device that has failed does nothing more.
  (void)device_->cuda()->cuda().api().stream_synchronize(stream_);
}

/// A tensor by itself is read where it lies, if it travels as it is; others are packed first.
Status DeviceAllreduce::launch(ReduceOp op, TimePoint until,
                               const std::function<Status()>& meanwhile) {
  const auto& tensors = result_->tensors();
  const std::uint64_t bucket = result_->address();
  const bool alone = tensors.size() == 1 && !tensors.front().is_narrowed();
  if (!alone) {
    if (Status packed = device_->mover().pack(tensors, bucket, stream_); !packed.ok()) {
      return packed;
    }
  }
  const std::vector<Run> runs = runs_of(tensors);
  const auto reduce = [&](const Api& api, ncclComm* comm, const Run& run) {
    const std::uint64_t to = bucket + run.offset;
    const std::uint64_t from = alone ? tensors.front().input : to;
    return api.all_reduce(pointer_to(from), pointer_to(to), run.count, type_of(run.dtype),
                          op_of(op), comm, static_cast<cudaStream_t>(stream_));
  };
  if (runs.size() == 1) {
    return communicator_.perform(
        "ncclAllReduce",
        [&](const Api& api, ncclComm* comm) -> int { return reduce(api, comm, runs.front()); },
        until, meanwhile);
  }
  return communicator_.perform(
      "ncclGroupEnd",
      [&](const Api& api, ncclComm* comm) -> int {
        return in_group(api, [&] {
          for (const Run& run : runs) {
            const ncclResult_t queued = reduce(api, comm, run);
            if (queued != ncclSuccess && queued != ncclInProgress) return queued;
          }
          return ncclSuccess;
        });
      },
      until, meanwhile);
}

Status DeviceAllreduce::wait(TimePoint until, const std::function<Status()>& meanwhile) {
  const auto& cuda = *device_->cuda();
  Event done(cuda.cuda().api());
  if (Status status = cuda.outcome("cuEventRecord", done.record(stream_)); !status.ok()) {
    return status;
  }
  for (int looks = 0;; ++looks) {
    const int error = done.query();
    if (error == 0) return {};
    if (error != device::CudaApi::kNotReady) return cuda.outcome("an allreduce of NCCL", error);
    if (Status status = meanwhile(); !status.ok()) return status;
    if (looks % kLooksPerCheck == 0) {
      if (Status status = communicator_.check(); !status.ok()) return status;
      if (Clock::now() >= until) {
        return Status(Code::kTimeout, "an allreduce of NCCL has not ended in time");
      }
    }
    if (looks > kYields) {
      std::this_thread::sleep_for(kPause);
    } else if (looks > kSpins) {
      ::sched_yield();
    }
  }
}

}  // namespace elastic::collectives::nccl
