#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "base/module_file.hpp"
#include "base/status.hpp"
#include "collectives/backend/backend.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

/// A view as a loadable backend is given it, for one lane.
struct ModuleView {
  std::uint64_t generation = 0;
  std::size_t lane = 0;
  std::string worker;  ///< its incarnation: a process may have several
  std::shared_ptr<transport::Mesh> mesh;
  /// On the same links, for what the library behind the module does not have: agreeing on
  /// mismatches, handing over, transfers. Of the two only one may run at a time.
  std::unique_ptr<Backend> native;
};

/// How the process takes part.
struct ModuleStart {
  std::size_t lanes = 0;
  bool under_mpirun = false;
  std::string log_level = {};     ///< Options::log_level: modules have a log of their own
  std::string nccl_library = {};  ///< Options::nccl_library
  /// What NCCL takes this host for, where that is not the host; none: it lets ranks of one host
  /// share a device.
  std::optional<std::string> nccl_host = "";
  bool nccl_waits = false;  ///< Options::nccl_meanwhile is "wait"
};

/// A backend that is loaded when a job asks for it: what its shared object exports.
struct BackendModule {
  ModuleHead head;
  bool fixed_membership;  ///< nobody can join
  bool works_on_devices;  ///< takes Payload::on_device
  /// By the thread that calls `init`, before this worker is a member; may block. Again for another
  /// context of the process.
  Status (*start)(const ModuleStart& how);
  /// Does not block. A failure means that the library can never serve this view, and ends the job
  /// for this worker.
  Result<std::unique_ptr<Backend>> (*make)(ModuleView view);
  /// Where it is there: waits, within deadlines of its own, until nothing is under way any more of
  /// what backends that are gone have begun. When no backend is left, and before the process ends.
  void (*end)();
};
static_assert(std::is_standard_layout_v<BackendModule>, "its head is found at its own address");

}  // namespace elastic::collectives
