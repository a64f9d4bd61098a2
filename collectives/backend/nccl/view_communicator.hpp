#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/nccl/communicator.hpp"
#include "collectives/backend/nccl/letter_box.hpp"
#include "collectives/backend/nccl/nccl_services.hpp"
#include "collectives/backend/nccl/shared_device.hpp"

namespace elastic::collectives::nccl {

/// The communicator of a view, which a worker's lanes share: begun once, on one device, and given
/// up once.
///
/// Any thread.
class ViewCommunicator {
 public:
  ViewCommunicator(DecidedView view, NcclServices services);
  /// Leaves what there is to the burials.
  ~ViewCommunicator();
  ViewCommunicator(const ViewCommunicator&) = delete;
  ViewCommunicator& operator=(const ViewCommunicator&) = delete;

  /// What this rank can tell the others.
  struct Standing {
    std::shared_ptr<Communicator> communicator;  ///< null: none has been begun
    bool ready = false;
    bool alive = true;             ///< NCCL has not failed in this view
    bool apart = true;             ///< no two ranks were found on one device
    std::optional<Letter> letter;  ///< that it has for the other ranks
    std::uint8_t rounds = 0;       ///< of letters, that were carried
  };
  Standing standing() const;

  enum class Device : std::uint8_t { kKnown, kGuessed };
  enum class Fit : std::uint8_t {
    kFits,          ///< it is or can be one for that device
    kGuessedWrong,  ///< it was begun for another, and not used yet: it can be begun anew
    kOther,
  };
  Fit fit(const SharedDevice& device) const;
  /// Begins it, unless that was done, or NCCL is still with one before. kUnavailable: it will never
  /// be done with that.
  Status begin(std::shared_ptr<SharedDevice> device, Device how);
  /// Drops what was begun.
  void begin_anew();
  /// From now on its device is known.
  void use();
  void deliver(std::uint8_t round, std::vector<std::string> letters);

  /// Waits a moment, or less where there is something to tell: a letter, that it is ready or dead,
  /// or that it can be begun. True if there is. kUnavailable as for `begin`.
  Result<bool> wait_for_news();

  /// NCCL is not used any more in this view, and has let go of what it has of the device. The
  /// failure, where it does not: then this worker has to leave. `why`, where it is not the
  /// communicator that knows.
  Status give_up(const Status& why);
  /// Of a communicator whose ranks are not apart, as some of them know. Waits a little for this
  /// one.
  Status why_not_apart() const;
  void abort() noexcept;

 private:
  std::pair<std::shared_ptr<Communicator>, std::shared_ptr<LetterBox>> both() const;

  const DecidedView view_;
  const NcclServices services_;
  mutable std::mutex mutex_;
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<LetterBox> letters_;
  std::shared_ptr<SharedDevice> device_;
  bool guessed_ = false;
  bool off_ = false;
  bool aborted_ = false;
};

/// That of each view that a worker's backends are in. `worker` tells workers of one process apart.
///
/// Any thread.
class ViewCommunicators {
 public:
  std::shared_ptr<ViewCommunicator> of(const std::string& worker, DecidedView view,
                                       const NcclServices& services);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<ViewCommunicator>> all_;
};

}  // namespace elastic::collectives::nccl
