#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "collectives/backend/nccl/communicator_state.hpp"

namespace elastic::collectives::nccl {

class Burials;
class NcclLibrary;
class SharedDevices;
class ViewCommunicators;

/// What a worker's backends share, and how they go about it.
struct NcclServices {
  std::shared_ptr<const NcclLibrary> library;
  std::shared_ptr<SharedDevices> devices;
  std::shared_ptr<ViewCommunicators> communicators;
  std::shared_ptr<Burials> burials;
  bool waits = false;  ///< for NCCL, instead of going through host memory until it is ready
  /// ModuleStart::nccl_host.
  std::optional<std::string> host = "";
  /// Of communicators. That for the start is long: the operations of the lanes carry what the ranks
  /// have to tell each other, and nobody waits meanwhile.
  Deadlines deadlines{.start = std::chrono::minutes(5)};
  /// For a collective; and as long again for each GiB.
  Duration operation = std::chrono::minutes(2);
  /// How long a transfer of state is held up for rank 0 to make the id of a communicator, so that
  /// NCCL makes it while the state travels.
  Duration head_start = std::chrono::milliseconds(500);
};

}  // namespace elastic::collectives::nccl
