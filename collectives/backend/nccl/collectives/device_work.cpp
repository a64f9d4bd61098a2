#include "collectives/backend/nccl/collectives/device_work.hpp"

#include <chrono>
#include <sched.h>
#include <thread>

namespace elastic::collectives::nccl {

namespace {

constexpr unsigned kEventFlags = 2;  // CU_EVENT_DISABLE_TIMING of cuda.h
/// A wait first spins, for this many queries of the device, then yields the processor between
/// queries, then sleeps between them.
constexpr int kSpins = 100;
constexpr int kYields = 1000;
constexpr Duration kPause = std::chrono::microseconds(20);
constexpr int kLooksPerCheck = 64;

/// An event of CUDA's current context.
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

Status DeviceWork::run(Duration most, const Meanwhile& meanwhile) {
  const Result<void*> stream = device()->stream(where_.lane);
  if (!stream.ok()) return stream.status();
  stream_ = stream.value();
  if (Status prepared = prepare(); !prepared.ok()) return prepared;
  const TimePoint until = Clock::now() + most * (1 + static_cast<Duration::rep>(bytes() >> 30U));

  const device::CurrentContext here = device()->cuda()->enter();
  Status status = launch(until, meanwhile);
  if (status.ok()) status = wait(until, meanwhile);
  // A failure of a peer may show in the communicator alone.
  return status.ok() ? communicator().check() : status;
}

Status DeviceWork::make_result(std::span<const DeviceTensor> tensors, std::uint32_t divisor) {
  auto made = BucketResult::make(device(), stream_, tensors, divisor, std::move(where_.registered));
  if (!made.ok()) return made.status();
  result_ = std::move(made).value();
  return {};
}

void DeviceWork::wait_for_copies() const {
  if (!result_) return;
  const device::CurrentContext here = device()->cuda()->enter();
  // The result does not matter: a device that has failed copies nothing more.
  (void)device()->cuda()->cuda().api().stream_synchronize(stream_);
}

Status DeviceWork::wait(TimePoint until, const Meanwhile& meanwhile) {
  const auto& cuda = *device()->cuda();
  Event done(cuda.cuda().api());
  if (Status status = cuda.outcome("cuEventRecord", done.record(stream_)); !status.ok()) {
    return status;
  }
  for (int looks = 0;; ++looks) {
    const int error = done.query();
    if (error == 0) return {};
    if (error != device::CudaApi::kNotReady) return cuda.outcome("a collective of NCCL", error);
    if (Status status = meanwhile(); !status.ok()) return status;
    if (looks % kLooksPerCheck == 0) {
      if (Status status = communicator().check(); !status.ok()) return status;
      if (Clock::now() >= until) {
        return Status(Code::kTimeout, "a collective of NCCL has not ended in time");
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
