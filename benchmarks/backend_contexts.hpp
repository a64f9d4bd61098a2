#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/library_settings.hpp"
#include "benchmarks/rank_device.hpp"
#include "benchmarks/rank_options.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

/// This process's membership in a job whose collectives one backend performs.
struct BackendContext {
  std::string label;  ///< see label_of
  std::unique_ptr<Context> context;
};

/// The name of `names[index]`; "native#2" where it comes for the second time.
std::string label_of(const std::vector<std::string>& names, std::size_t index);

/// A context for each of `settings.jobs`, in order, each with a job of its own. All ranks call it
/// alike. kInternal when this process is not the same rank in all of them. Throws elastic::Error,
/// which names a backend that is not there, and those that are.
Result<std::vector<BackendContext>> open_contexts(const RankOptions& options,
                                                  const LibrarySettings& settings);

/// The device that this rank of `context` has its tensors on, where --device says "cuda"; null
/// where it says "host". kUnavailable where there is none.
Result<std::unique_ptr<RankDevice>> open_device(const std::string& device, const Context& context);
/// A line about it, for people; empty where it is null.
std::string device_text(const RankDevice* device);

/// Leaves all jobs. The contexts can only be destroyed afterwards.
void shut_down(const std::vector<BackendContext>& contexts);

/// kPeerLost when not all of `ranks` took part in a call: times would not be comparable.
Status check_complete(const Contributors& contributors, int ranks);

}  // namespace elastic::bench
