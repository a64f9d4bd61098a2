#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config/environment.hpp"
#include "base/status.hpp"
#include "collectives/backend/backend.hpp"
#include "collectives/backend/module.hpp"
#include "collectives/backend/native/native_backend.hpp"
#include "collectives/transport/mesh.hpp"
#include "elastic/options.hpp"

namespace elastic::runtime {

inline constexpr std::size_t kLanes = 2;

/// Makes the backends of each view. Options::backend names their kind; all kinds but `native` are
/// loaded from a module. Must outlive the backends.
class Backends {
 public:
  /// Loads the module, if any. `arena` is this worker's. kUnavailable says why there is no backend
  /// of that kind, and where it was looked for.
  static Result<Backends> load(const Options& options, const EnvironmentMap& environment,
                               std::shared_ptr<transport::Arena> arena);

  /// Starts the module. Called by the thread that calls `init`, before this worker is a member; may
  /// block.
  Status start(std::size_t lanes, bool under_mpirun) const;

  /// Whether the backends take tensors on devices in place.
  bool work_on_devices() const { return module_ != nullptr && module_->works_on_devices; }
  /// Whether every pair of members has to be linked, however many there are.
  bool use_all_links() const { return module_ != nullptr && module_->uses_all_links; }

  /// Whether members of the host cannot go on without the end of one that does not answer.
  bool abort_waits_for_peers() const {
    return module_ != nullptr && module_->abort_waits_for_peers;
  }

  /// Ok if a worker can join a running job with this backend; otherwise the reason why not.
  Status may_join() const;

  /// Makes the backend of one lane for the view `generation`. `hosts` has a number for each rank's
  /// host; `worker` is this worker's incarnation. A failure is permanent: the job cannot go on with
  /// this backend.
  Result<std::unique_ptr<collectives::Backend>> make(const std::string& worker,
                                                     std::uint64_t generation, std::size_t lane,
                                                     std::shared_ptr<transport::Mesh> mesh,
                                                     std::vector<int> hosts) const;

  /// The measurements of the latest view with an operation. The lanes share the lines, so the
  /// measurements of one hold for the others.
  Tuning tuning() const { return native_.record->latest(); }

 private:
  struct EndModule {
    void operator()(const collectives::BackendModule* module) const {
      if (module->end != nullptr) module->end();
    }
  };

  collectives::NativeOptions native_;
  std::unique_ptr<const collectives::BackendModule, EndModule> module_;  // null: native
  collectives::ModuleStart start_;
};

}  // namespace elastic::runtime
