#include "collectives/backend/nccl/collectives/device_work.hpp"

#include <chrono>
#include <sched.h>
#include <thread>

namespace elastic::collectives::nccl {

namespace {

/// A wait first spins, for this many queries of the device, then yields the processor between
/// queries, and sleeps between them from this time on: a sleep lasts longer than most collectives.
constexpr int kSpins = 100;
constexpr Duration kYields = std::chrono::milliseconds(5);
constexpr Duration kPause = std::chrono::microseconds(20);
constexpr int kLooksPerCheck = 64;

}  // namespace

DeviceWork::DeviceWork(Where where)
    : where_(std::move(where)), is_registered_(where_.registered.data() != nullptr) {}

DeviceWork::~DeviceWork() {
  if (!end_ && !packed_) return;
  const device::CurrentContext here = device()->cuda()->enter();
  packed_.reset();
  end_.reset();
}

Status DeviceWork::prepare() {
  const Result<void*> stream = device()->stream(where_.lane);
  if (!stream.ok()) return stream.status();
  stream_ = stream.value();
  if (const Result<void*> back = device()->way_back(); !back.ok()) return back.status();
  return allocate();
}

Status DeviceWork::pack_early() {
  const device::CurrentContext here = device()->cuda()->enter();
  const Result<void*> via = device()->packing();
  if (!via.ok()) return via.status();
  packing_ = via.value();
  if (Status packed = pack(packing_); !packed.ok()) return packed;
  return record(packed_, packing_);
}

Status DeviceWork::begin(TimePoint until, const Meanwhile& meanwhile) {
  const device::CurrentContext here = device()->cuda()->enter();
  Status status = packed_ ? put_behind_packing() : pack(stream_);
  if (status.ok()) status = launch(until, meanwhile);
  if (status.ok()) status = record(end_, stream_);
  return status;
}

Status DeviceWork::wait(TimePoint until, const Meanwhile& meanwhile) {
  const device::CurrentContext here = device()->cuda()->enter();
  Status status = wait_for_end(until, meanwhile);
  // A failure of a peer may show in the communicator alone.
  return status.ok() ? communicator().check() : status;
}

TimePoint DeviceWork::limit(Duration most) const {
  return Clock::now() + most * (1 + static_cast<Duration::rep>(bytes() >> 30U));
}

Status DeviceWork::make_result(std::span<const DeviceTensor> tensors, std::uint32_t divisor,
                               std::size_t bytes) {
  auto made = BucketResult::make(device(), tensors, divisor,
                                 {std::move(where_.registered), where_.lack, bytes});
  if (!made.ok()) return made.status();
  result_ = std::move(made).value();
  return {};
}

void DeviceWork::write_to_output(const DeviceTensor& tensor, std::uint32_t divisor) {
  result_ = BucketResult::in_output(device(), tensor, divisor);
}

// The results do not matter here and below: a device that has failed copies nothing more.
void DeviceWork::wait_for_packing() const {
  if (packing_ == nullptr) return;
  const device::CurrentContext here = device()->cuda()->enter();
  (void)device()->cuda()->cuda().api().stream_synchronize(packing_);
}

void DeviceWork::wait_for_copies() const {
  if (!result_) return;
  wait_for_packing();
  const device::CurrentContext here = device()->cuda()->enter();
  (void)device()->cuda()->cuda().api().stream_synchronize(stream_);
}

Status DeviceWork::put_behind_packing() {
  const auto& cuda = *device()->cuda();
  return cuda.outcome("cuStreamWaitEvent",
                      cuda.cuda().api().stream_wait_event(stream_, packed_->handle(), 0));
}

/// Puts an event behind what is queued on the stream `via`.
Status DeviceWork::record(std::unique_ptr<DeviceEvent>& event, void* via) {
  const auto& cuda = *device()->cuda();
  auto made = std::make_unique<DeviceEvent>(cuda.cuda().api());
  Status recorded = cuda.outcome("cuEventRecord", made->record(via));
  if (recorded.ok()) event = std::move(made);
  return recorded;
}

bool DeviceWork::has_stopped() const {
  if (!end_ || is_registered_) return false;
  const device::CurrentContext here = device()->cuda()->enter();
  return end_->query() != device::CudaApi::kNotReady;
}

Status DeviceWork::wait_for_end(TimePoint until, const Meanwhile& meanwhile) {
  const auto& cuda = *device()->cuda();
  const TimePoint sleeps_from = Clock::now() + kYields;
  bool sleeps = false;
  for (int looks = 0;; ++looks) {
    const int error = end_->query();
    if (error == 0) return {};
    if (error != device::CudaApi::kNotReady) return cuda.outcome("a collective of NCCL", error);
    if (Status status = meanwhile(); !status.ok()) return status;
    if (looks % kLooksPerCheck == 0) {
      if (Status status = communicator().check(); !status.ok()) return status;
      const TimePoint now = Clock::now();
      sleeps = now >= sleeps_from;
      if (now >= until) {
        return Status(Code::kTimeout, "a collective of NCCL has not ended in time");
      }
    }
    if (sleeps) {
      std::this_thread::sleep_for(kPause);
    } else if (looks > kSpins) {
      ::sched_yield();
    }
  }
}

}  // namespace elastic::collectives::nccl
