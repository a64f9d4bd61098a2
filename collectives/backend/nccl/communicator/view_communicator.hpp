#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/backend/nccl/communicator/bootstrap_exchange.hpp"
#include "collectives/backend/nccl/communicator/communicator.hpp"
#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "collectives/backend/nccl/nccl_services.hpp"

namespace elastic::collectives::nccl {

/// The communicator of a view, which all lanes of a worker share. It is made once, for one device;
/// a failure on any rank ends its use for the rest of the view.
///
/// Any thread.
class ViewCommunicator {
 public:
  /// `worker`: a worker's incarnation.
  ViewCommunicator(std::string worker, DecidedView view, NcclServices services);
  /// Retires the communicator, or passes it on to NcclServices::reaper.
  ~ViewCommunicator();
  ViewCommunicator(const ViewCommunicator&) = delete;
  ViewCommunicator& operator=(const ViewCommunicator&) = delete;

  /// The state of the communicator on this rank, which the ranks exchange.
  struct Standing {
    std::shared_ptr<Communicator> communicator;  ///< null: none has been begun
    bool ready = false;
    bool alive = true;             ///< NCCL has not failed in this view
    bool distinct_devices = true;  ///< no two ranks were found to use one device
    std::optional<BootstrapMessage>
        message;              ///< the message that waits to be sent to the other ranks
    std::uint8_t rounds = 0;  ///< the number of delivered rounds of messages
  };
  Standing standing() const;

  enum class Device : std::uint8_t { kKnown, kGuessed };
  enum class Fit : std::uint8_t {
    kFits,          ///< it is for this device, or not begun yet
    kGuessedWrong,  ///< it was begun for another device, but not used: it can be begun again
    kOther,         ///< it is in use for another device
  };
  Fit fit(const SharedDevice& device) const;
  /// Whether `begin` has nothing to wait for, or nothing to do: NCCL has released all earlier
  /// communicators but for those that are retired on `device`, or this one was begun. Others that
  /// are retired end now.
  bool can_begin(const SharedDevice& device) const;
  /// Begins to make the communicator, unless it was begun, or NCCL has not yet released an earlier
  /// one. kUnavailable: NCCL will never release that one.
  Status begin(std::shared_ptr<SharedDevice> device, Device how);
  /// Drops the communicator, so that `begin` can make one for another device.
  void begin_anew();
  /// Drops a communicator that is to be shrunk from another, with that one: a rank that has none
  /// waits for its old one's end, and NCCL for this rank. So no message of it was delivered.
  void drop_with_parent();
  /// Marks the device as known (Device::kKnown).
  void use();
  void deliver(std::uint8_t round, std::vector<std::string> messages);

  /// Waits about a millisecond, or less if there is news: a message to send, a communicator that
  /// became ready or dead, or one that can be begun. True if there is. kUnavailable as for `begin`.
  Result<bool> wait_for_news();

  /// Ends the use of NCCL in this view. Does not wait. `why`: the reason, if the communicator
  /// itself does not know it. The error: NCCL has not released its resources on the device in time,
  /// and this worker has to leave.
  Status give_up(const Status& why);
  /// After `give_up`: waits until `is_unused` says that NCCL makes no use any more of what the
  /// caller gave it, or NCCL has released everything, which takes about half a second over sockets.
  /// The error is that of `give_up`.
  Status wait_until_unused(const std::function<bool()>& is_unused);
  /// The error that two ranks use one device, after some rank has found it. Waits a little for the
  /// communicator of this rank to find it, too, for the full message.
  Status shared_device_error() const;
  /// Ends the view: retires the communicator if the view's lanes do not use it, or aborts it, and
  /// passes it on to NcclServices::reaper.
  void abort() noexcept;

  /// Brackets the work that a lane has for NCCL on the device. A communicator in use is aborted at
  /// the end of the view, and not retired: its work might never end otherwise.
  class Use {
   public:
    explicit Use(ViewCommunicator& shared) : shared_(shared) { shared_.count_use(1); }
    ~Use() { shared_.count_use(-1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    ViewCommunicator& shared_;
  };

 private:
  void count_use(int change);
  /// Hands the communicator over to NcclServices::communicators if it can be shrunk later.
  bool retire() ELASTIC_REQUIRES(mutex_);
  std::pair<std::shared_ptr<Communicator>, std::shared_ptr<BootstrapExchange>>
  communicator_and_exchange() const;

  const std::string worker_;
  const DecidedView view_;
  const NcclServices services_;
  mutable Mutex mutex_;
  std::shared_ptr<Communicator> communicator_ ELASTIC_GUARDED_BY(mutex_);
  std::shared_ptr<BootstrapExchange> exchange_ ELASTIC_GUARDED_BY(mutex_);
  std::shared_ptr<SharedDevice> device_ ELASTIC_GUARDED_BY(mutex_);
  bool guessed_ ELASTIC_GUARDED_BY(mutex_) = false;
  bool off_ ELASTIC_GUARDED_BY(mutex_) = false;
  bool aborted_ ELASTIC_GUARDED_BY(mutex_) = false;
  bool anew_ ELASTIC_GUARDED_BY(mutex_) = false;  // after `begin_anew`
  int uses_ ELASTIC_GUARDED_BY(mutex_) = 0;       // Use
};
}  // namespace elastic::collectives::nccl
