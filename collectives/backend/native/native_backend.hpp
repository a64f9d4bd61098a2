#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/native/tuning_record.hpp"
#include "collectives/plan/choose.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::transport {
class Arena;
}

namespace elastic::collectives {

struct NativeOptions {
  /// Large data travels in pieces of this many bytes, each forwarded as soon as it has arrived.
  std::size_t segment_bytes = 256 * 1024;
  /// Pieces of a state transfer.
  std::size_t transfer_segment_bytes = 1024 * 1024;
  plan::Thresholds thresholds{};
  /// Where there is one the links are measured, unless all ranks have it from the view before; the
  /// thresholds and the segment (`segment_bytes` at most) are set accordingly.
  std::shared_ptr<TuningRecord> record;
  /// Then also measured, if all ranks have it so: how many of the flows of links between hosts are
  /// of use. Otherwise all are used.
  bool measures_flows = false;
  /// For each rank, a number that is the same for all ranks of its host. Empty: there is one host.
  std::vector<int> hosts;
  /// Of this rank, which the others of its host have been told of with their links; may be null.
  std::shared_ptr<transport::Arena> arena;
  /// Whether inputs are kept until results are whole, and results until all ranks have theirs.
  /// Without it a failure ruins what was reduced in place: only to measure what it costs.
  bool recoverable = true;
};

/// The backend that is always there: plans, run on the links of `mesh`, for the view `generation`.
std::unique_ptr<Backend> make_native_backend(std::uint64_t generation,
                                             std::shared_ptr<transport::Mesh> mesh,
                                             const NativeOptions& options = {});

}  // namespace elastic::collectives
