#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "collectives/backend/nccl/communicator/communicator_config.hpp"
#include "collectives/backend/nccl/communicator/communicator_state.hpp"

namespace elastic::collectives::nccl {

class CommunicatorReaper;
class NcclLibrary;
class SharedDevices;
class ViewCommunicators;

/// The objects that all NCCL backends of a worker share, and their settings.
struct NcclServices {
  std::shared_ptr<const NcclLibrary> library;
  std::shared_ptr<SharedDevices> devices;
  std::shared_ptr<ViewCommunicators> communicators;
  std::shared_ptr<CommunicatorReaper> reaper;
  bool waits = false;                    ///< NcclSettings::waits
  std::optional<std::string> host = "";  ///< NcclSettings::host
  bool shrinks = false;                  ///< NcclSettings::shrinks, if NCCL can do that
  bool overlaps = true;                  ///< NcclSettings::overlaps
  NcclTuning tuning = {};                ///< NcclSettings::tuning
  /// Limits for communicators. The one for the start is long, because the start proceeds only with
  /// the operations of the lanes, which carry its messages; no thread of the trainer waits for it.
  Deadlines deadlines{.start = std::chrono::minutes(5)};
  /// Limit for a collective; and as long again for each GiB.
  Duration operation = std::chrono::minutes(2);
  /// Limit for the wait for a device that another lane uses; and a nanosecond for each byte.
  Duration turn = std::chrono::microseconds(100);
  /// Limit by which a transfer of state is delayed for the exchange of a communicator's id, so that
  /// NCCL makes the communicator while the state travels.
  Duration head_start = std::chrono::milliseconds(500);
};

}  // namespace elastic::collectives::nccl
