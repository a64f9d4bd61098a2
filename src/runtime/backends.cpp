#include "runtime/backends.hpp"

#include <utility>

#include "base/log.hpp"
#include "base/module_file.hpp"

namespace elastic::runtime {

using collectives::Backend;
using collectives::BackendModule;

namespace {

/// Of one host: up to so many ranks exchange with each other directly, beyond they form a ring.
constexpr int kPairwiseRanks = 16;

}  // namespace

Result<Backends> Backends::load(const Options& options) {
  Backends backends;
  backends.native_.segment_bytes = options.segment_bytes;
  if (options.backend == "native") return backends;
  const Result<const ModuleHead*> head = load_module(options.backend, options.backend_path);
  if (!head.ok()) return head.status();
  backends.module_ = reinterpret_cast<const BackendModule*>(head.value());
  log::get().info("backend {}: {}", options.backend, head.value()->describe());
  return backends;
}

Status Backends::start(std::size_t lanes, bool under_mpirun) const {
  return module_ == nullptr ? Status() : module_->start({lanes, under_mpirun});
}

Status Backends::may_join() const {
  if (module_ == nullptr || !module_->fixed_membership) return {};
  return Status(Code::kRefused, "the job is running already, and " + module_->head.describe() +
                                    " serves the workers that it was started with; a job that "
                                    "others can join uses the backend native or gloo "
                                    "(ELASTIC_BACKEND)");
}

Result<std::unique_ptr<Backend>> Backends::make(std::uint64_t generation, std::size_t lane,
                                                std::shared_ptr<transport::Mesh> mesh,
                                                bool one_host) const {
  collectives::NativeOptions options = native_;
  if (one_host) options.thresholds.pairwise_ranks = kPairwiseRanks;
  std::unique_ptr<Backend> native = collectives::make_native_backend(generation, mesh, options);
  if (module_ == nullptr) return native;
  return module_->make({generation, lane, std::move(mesh), std::move(native)});
}

}  // namespace elastic::runtime
