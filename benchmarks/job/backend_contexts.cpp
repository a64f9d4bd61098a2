#include "benchmarks/job/backend_contexts.hpp"

#include <algorithm>

namespace elastic::bench {

std::string label_of(const std::vector<std::string>& names, std::size_t index) {
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(index);
  const auto before = std::count(names.begin(), end, *end);
  return *end + (before > 0 ? "#" + std::to_string(before + 1) : "");
}

namespace {

BackendContext open_context(const RankOptions& options, const LibrarySettings& settings,
                            std::size_t index) {
  const std::vector<std::string>& backends = settings.jobs;
  Options library;
  library.backend = backends[index];
  library.transport = *find_named(kTransports, settings.transport);
  library.encrypt = options.encrypt;
  const bool several = backends.size() > 1;
  // With one server for each backend, the jobs have the same name: that of ELASTIC_JOB.
  if (several && options.rendezvous.empty()) library.job = "backend-" + std::to_string(index);
  if (!options.rendezvous.empty()) library.rendezvous = options.rendezvous[index];
  return {label_of(backends, index), std::make_unique<Context>(library)};
}

}  // namespace

Result<std::vector<BackendContext>> open_contexts(const RankOptions& options,
                                                  const LibrarySettings& settings) {
  std::vector<BackendContext> contexts;
  for (std::size_t index = 0; index < settings.jobs.size(); ++index) {
    contexts.push_back(open_context(options, settings, index));
    const Context& first = *contexts.front().context;
    const Context& last = *contexts.back().context;
    if (last.rank() != first.rank() || last.size() != first.size()) {
      return Status(Code::kInternal,
                    "this process is rank " + std::to_string(first.rank()) + " of " +
                        std::to_string(first.size()) + " with backend " + contexts.front().label +
                        ", but " + std::to_string(last.rank()) + " of " +
                        std::to_string(last.size()) + " with " + contexts.back().label);
    }
  }
  return contexts;
}

Result<std::unique_ptr<RankDevice>> open_device(const std::string& device, const Context& context) {
  if (device != "cuda") return std::unique_ptr<RankDevice>();
  return RankDevice::open(context.local_rank(), context.local_size());
}

std::string device_text(const RankDevice* device) {
  return device == nullptr ? ""
                           : "# tensors in the memory of CUDA devices: " + device->text() + "\n";
}

void shut_down(const std::vector<BackendContext>& contexts) {
  for (const BackendContext& one : contexts) one.context->shutdown();
}

Status check_complete(const Contributors& contributors, int ranks) {
  if (contributors.size() == static_cast<std::size_t>(ranks)) return {};
  return Status(Code::kPeerLost,
                "a worker was lost: " + std::to_string(contributors.size()) + " of " +
                    std::to_string(ranks) +
                    " ranks took part in a call; the times would not be comparable");
}

}  // namespace elastic::bench
