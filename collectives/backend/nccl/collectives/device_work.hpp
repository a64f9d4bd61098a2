#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/device_tensors.hpp"
#include "collectives/backend/nccl/collectives/device_event.hpp"
#include "collectives/backend/nccl/communicator/communicator.hpp"
#include "collectives/backend/nccl/memory/bucket_result.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"

namespace elastic::collectives::nccl {

/// This rank's part in a collective by NCCL, on the stream of a lane. It only reads the inputs. The
/// result goes to a bucket on the device, or straight to the output: no other rank asks for it, and
/// an output is undefined before its call returns. Owned by the thread that has the turn on the
/// device.
class DeviceWork {
 public:
  using Meanwhile = std::function<Status()>;
  struct Where {
    std::shared_ptr<Communicator> communicator;
    std::shared_ptr<SharedDevice> device;
    std::size_t lane = 0;
    /// Registered memory for the result (see Registrations); may be empty.
    device::BlockPool::Block registered = {};
    /// Whether a lack of memory for the result is a reason for a warning.
    SharedDevice::Lack lack = SharedDevice::Lack::kMatters;
  };

  virtual ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  /// Takes all device memory that the work needs, before `begin`.
  Status prepare();
  /// Has the device copy the inputs to where NCCL reads them while it is at other work, before
  /// `begin`.
  Status pack_early();

  /// Queues the work on the device, and waits until NCCL has taken its part, for which it may need
  /// the other ranks. Here and in `wait`, `meanwhile` is called while this rank
  /// waits; its failure ends the wait. After a failure inputs, output and bucket stay in use until
  /// the communicator has ended, or `has_stopped`, and `wait_for_copies` has returned.
  Status begin(TimePoint until, const Meanwhile& meanwhile);
  /// Waits for the end of the work, which has begun.
  Status wait(TimePoint until, const Meanwhile& meanwhile);
  /// A time limit from now on: `most`, and as long again for each GiB.
  TimePoint limit(Duration most) const;

  /// After a failure, when the communicator was aborted: whether the device has ended all of the
  /// work. NCCL itself reads and writes its own memory otherwise; but other ranks may still be at
  /// registered memory, for which this is never true.
  bool has_stopped() const;

  /// For work that has not begun: waits until no copy of `pack_early` reads the inputs.
  void wait_for_packing() const;
  /// After a failure, when the work is over: waits until no copy reads the inputs or writes to an
  /// output.
  void wait_for_copies() const;

  std::shared_ptr<DeviceResult> take_result() { return std::move(result_); }

 protected:
  explicit DeviceWork(Where where);

  /// Allocates the result by `make_result`, and any other memory that the work needs.
  virtual Status allocate() = 0;
  /// Makes the bucket for the result, with the tensors at their offsets, and at least `bytes`.
  Status make_result(std::span<const DeviceTensor> tensors, std::uint32_t divisor,
                     std::size_t bytes = 0);
  /// Has NCCL write the result straight to the output of `tensor`, in place of `make_result`. The
  /// output has room for it (can_go_to_output).
  void write_to_output(const DeviceTensor& tensor, std::uint32_t divisor);
  /// Whether the result goes to registered memory. The other ranks' does then, too.
  bool is_registered() const { return is_registered_; }
  /// The amount of work, for the time limit.
  virtual std::size_t bytes() const { return result_->bytes(); }
  /// Queues the copies that NCCL's part needs first on the stream `via`. Called within
  /// CudaDevice::enter, like `launch`.
  virtual Status pack(void* /*via*/) { return {}; }
  /// Queues NCCL's part, and what follows it, on the stream.
  virtual Status launch(TimePoint until, const Meanwhile& meanwhile) = 0;

  Communicator& communicator() const { return *where_.communicator; }
  const std::shared_ptr<SharedDevice>& device() const { return where_.device; }
  void* stream() const { return stream_; }
  const BucketResult& result() const { return *result_; }

 private:
  Status put_behind_packing();
  Status record(std::unique_ptr<DeviceEvent>& event, void* via);
  Status wait_for_end(TimePoint until, const Meanwhile& meanwhile);

  Where where_;
  const bool is_registered_;
  void* stream_ = nullptr;
  void* packing_ = nullptr;              // the stream of `pack_early`; null without it
  std::unique_ptr<DeviceEvent> packed_;  // behind its copies
  std::unique_ptr<DeviceEvent> end_;     // of the work on the stream; null before it is queued
  std::shared_ptr<BucketResult> result_;
};

}  // namespace elastic::collectives::nccl
