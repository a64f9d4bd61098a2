#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/job/library_settings.hpp"
#include "benchmarks/job/rank_device.hpp"
#include "benchmarks/job/rank_options.hpp"
#include "elastic/context.hpp"

namespace elastic::bench {

/// This process's membership in a job whose collectives one backend performs.
struct BackendContext {
  std::string label;  ///< see label_of
  std::unique_ptr<Context> context;
};

/// The label of `names[index]`: the name, or "native#2" for its second occurrence.
std::string label_of(const std::vector<std::string>& names, std::size_t index);

/// Opens a context for each of `settings.jobs`, in order, each in a job of its own. All ranks call
/// it with the same arguments. kInternal if this process has different ranks in the jobs.
/// \throws elastic::Error, which for a missing backend names it and the present ones.
Result<std::vector<BackendContext>> open_contexts(const RankOptions& options,
                                                  const LibrarySettings& settings);

/// Opens the device for this rank's tensors if `device` (of --device) is "cuda"; null if it is
/// "host". kUnavailable if there is no device.
Result<std::unique_ptr<RankDevice>> open_device(const std::string& device, const Context& context);
/// A line about the device for the output; empty if it is null.
std::string device_text(const RankDevice* device);

/// Leaves all jobs. The contexts can only be destroyed afterwards.
void shut_down(const std::vector<BackendContext>& contexts);

/// kPeerLost when not all of `ranks` took part in a call: times would not be comparable.
Status check_complete(const Contributors& contributors, int ranks);

}  // namespace elastic::bench
