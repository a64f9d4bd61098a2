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
#include "elastic/tuning.hpp"

namespace elastic::collectives {

/// How the ranks of a view do collectives. The same on all of them.
struct Ways {
  bool letters = false;
  plan::Thresholds thresholds;
  std::size_t segment_bytes = 0;
  plan::LinkCosts costs;  ///< zeros where they were not measured
  /// Of the link between hosts that has most; 0 where there is one host.
  std::uint64_t flows_opened = 0;
};

/// Each rank knows its own links and options only: in front of a view's first operation they tell
/// each other, and measure. kMismatch, on all ranks, where options differ that must not.
Result<Ways> agree_on_ways(transport::Mesh& mesh, Executor& executor, PlanCache& plans,
                           const plan::Hosts& hosts, const NativeOptions& options,
                           bool has_mailboxes);

/// `most_letter_bytes`: the longest tensor that goes by letters.
Tuning describe(const Ways& ways, const plan::Hosts& hosts, std::uint64_t generation,
                std::size_t most_letter_bytes);

}  // namespace elastic::collectives
