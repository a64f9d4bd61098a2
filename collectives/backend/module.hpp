#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "base/backend_settings.hpp"
#include "base/module_file.hpp"
#include "base/status.hpp"
#include "collectives/backend/backend.hpp"
#include "collectives/transport/mesh.hpp"
#include "elastic/options.hpp"

namespace elastic::collectives {

/// A view for one lane, as a loadable backend receives it.
struct ModuleView {
  std::uint64_t generation = 0;
  std::size_t lane = 0;
  std::string worker;  ///< the worker's incarnation: a process may have several workers
  std::shared_ptr<transport::Mesh> mesh;
  /// A native backend on the same links, for what the library behind the module lacks: agreement on
  /// mismatches, handing over, transfers. The library and `native` must not use the links at once.
  std::unique_ptr<Backend> native;
};

/// The facts and settings with which a process starts a module.
struct ModuleStart {
  std::size_t lanes = 0;
  bool under_mpirun = false;
  LogLevel log_level = LogLevel::kWarn;  ///< each module has its own log
  BackendSettings settings = {};         ///< of this backend
};

/// The entry points of a backend that is loaded when a job asks for it; its shared object's export.
struct BackendModule {
  ModuleHead head;
  bool fixed_membership;  ///< no worker can join
  bool works_on_devices;  ///< takes payloads OnDevice
  bool uses_all_links;    ///< needs a link with every other rank
  /// An aborted view is not released before the other ranks of the host have aborted it as well, or
  /// their processes have ended: one that does not answer holds the others up.
  bool abort_waits_for_peers;
  /// Called by the thread that calls `init`, before this worker is a member, and again for each
  /// further context of the process. May block.
  Status (*start)(const ModuleStart& how);
  /// Makes the backend of a view. Does not block. A failure means that the library can never serve
  /// this view, and ends the job for this worker.
  Result<std::unique_ptr<Backend>> (*make)(ModuleView view);
  /// Waits, within its own deadlines, for the end of all work that destroyed backends have begun.
  /// Called when no backend is left, and before the process ends. May be null.
  void (*end)();
};
static_assert(std::is_standard_layout_v<BackendModule>, "its head is found at its own address");

}  // namespace elastic::collectives
