#include "runtime/backends.hpp"

#include <utility>

#include "base/config/variables.hpp"
#include "base/log.hpp"
#include "base/module_file.hpp"
#include "collectives/plan/choose.hpp"

namespace elastic::runtime {

using collectives::Backend;
using collectives::BackendModule;

Result<Backends> Backends::load(const Options& options, const EnvironmentMap& environment,
                                std::shared_ptr<transport::Arena> arena) {
  Backends backends;
  backends.native_.arena = std::move(arena);
  backends.native_.segment_bytes = options.segment_bytes;
  backends.native_.thresholds.algorithm =
      plan::algorithm_named(name_in(kAlgorithms, options.algorithm));
  backends.native_.measures_flows = options.tcp_streams == 0;
  backends.native_.record = std::make_shared<collectives::TuningRecord>();
  backends.start_.log_level = options.log_level;
  backends.start_.settings = settings_of(options.backend, options, environment);
  if (options.backend == "native") return backends;
  const Result<const ModuleHead*> head = load_module(options.backend, options.backend_path);
  if (!head.ok()) return head.status();
  backends.module_.reset(reinterpret_cast<const BackendModule*>(head.value()));
  std::string library = head.value()->describe();
  if (const auto find_library = head.value()->find_library; find_library != nullptr) {
    Result<std::string> found = find_library(options.nccl_library);
    if (!found.ok()) return found.status().within("the backend '" + options.backend + "'");
    library = std::move(found).value();
  }
  log::info("backend {}: {}", options.backend, library);
  return backends;
}

Status Backends::start(std::size_t lanes, bool under_mpirun) const {
  collectives::ModuleStart how = start_;
  how.lanes = lanes;
  how.under_mpirun = under_mpirun;
  return module_ == nullptr ? Status() : module_->start(how);
}

Status Backends::may_join() const {
  if (module_ == nullptr || !module_->fixed_membership) return {};
  return Status(Code::kRefused, "the job is running already, and " + module_->head.describe() +
                                    " serves the workers that it was started with; a job that "
                                    "others can join uses the backend native or gloo "
                                    "(ELASTIC_BACKEND)");
}

Result<std::unique_ptr<Backend>> Backends::make(const std::string& worker, std::uint64_t generation,
                                                std::size_t lane,
                                                std::shared_ptr<transport::Mesh> mesh,
                                                std::vector<int> hosts) const {
  collectives::NativeOptions options = native_;
  options.hosts = std::move(hosts);
  std::unique_ptr<Backend> native = collectives::make_native_backend(generation, mesh, options);
  if (module_ == nullptr) return native;
  return module_->make({generation, lane, worker, std::move(mesh), std::move(native)});
}

}  // namespace elastic::runtime
