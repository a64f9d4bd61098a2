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

/// Makes the backends of each view: of the kind that Options::backend names, which is loaded where
/// it is not our own. Outlives them.
class Backends {
 public:
  /// `arena` is this worker's. kUnavailable says why there is no backend of that kind, and where it
  /// was looked for.
  static Result<Backends> load(const Options& options, const EnvironmentMap& environment,
                               std::shared_ptr<transport::Arena> arena);

  /// By the thread that calls `init`, before this worker is a member; may block.
  Status start(std::size_t lanes, bool under_mpirun) const;

  /// Whether tensors on devices are given to them as they are.
  bool work_on_devices() const { return module_ != nullptr && module_->works_on_devices; }

  /// Why a worker cannot join a job that is running, where it cannot.
  Status may_join() const;

  /// For a lane of the view `generation`, with a number for each rank's host; `worker` is this
  /// one's incarnation. A failure is for good: the job cannot go on with this backend.
  Result<std::unique_ptr<collectives::Backend>> make(const std::string& worker,
                                                     std::uint64_t generation, std::size_t lane,
                                                     std::shared_ptr<transport::Mesh> mesh,
                                                     std::vector<int> hosts) const;

  /// Of the latest view with an operation. The lanes go over the same lines: what the first of them
  /// has measured holds for the others.
  Tuning tuning() const { return native_.record->latest(); }

 private:
  struct EndModule {
    void operator()(const collectives::BackendModule* module) const {
      if (module->end != nullptr) module->end();
    }
  };

  collectives::NativeOptions native_;
  std::unique_ptr<const collectives::BackendModule, EndModule> module_;  // none: native
  collectives::ModuleStart start_;
};

}  // namespace elastic::runtime
