#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/native_backend.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/tuning.hpp"
#include "collectives/transport/mesh.hpp"
#include "elastic/diagnostics.hpp"

namespace elastic::collectives {

/// The algorithms and sizes that the ranks of a view use. The same on all ranks.
struct ViewCapabilities {
  bool eager = false;  ///< small allreduces are eager
  plan::Thresholds thresholds;
  std::size_t segment_bytes = 0;
  plan::LinkCosts costs;  ///< zeros if they were not measured
  /// The greatest number of flows of a link between hosts; 0 if there is one host.
  std::uint64_t flows_opened = 0;
};

/// Negotiates the capabilities of a view before its first operation. Each rank knows only its own
/// links and options, so the ranks exchange them and agree on the least; they measure their links
/// unless all know the costs from the view before. kMismatch, on all ranks, if options differ that
/// must be the same.
Result<ViewCapabilities> negotiate_capabilities(transport::Mesh& mesh, Executor& executor,
                                                PlanCache& plans, const plan::Hosts& hosts,
                                                const NativeOptions& options,
                                                bool has_eager_channels);

/// The tuning that users see. `most_eager_bytes`: size limit of eager allreduces.
Tuning describe(const ViewCapabilities& capabilities, const plan::Hosts& hosts,
                std::uint64_t generation, std::size_t most_eager_bytes);

}  // namespace elastic::collectives
