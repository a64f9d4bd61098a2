#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/native/tuning_record.hpp"
#include "collectives/backend/payload.hpp"
#include "collectives/plan/choose.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::transport {
class Arena;
}

namespace elastic::collectives {

struct NativeOptions {
  /// Bytes of the segments in which large data travels. A rank forwards each on its arrival.
  std::size_t segment_bytes = 256 * 1024;
  /// Bytes of the segments of a state transfer.
  std::size_t transfer_segment_bytes = 1024 * 1024;
  plan::Thresholds thresholds{};
  /// If not null, the backend measures the links, unless all ranks know them from the view before,
  /// and sets the thresholds and the segment (at most `segment_bytes`) by their costs.
  std::shared_ptr<TuningRecord> record;
  /// With a record, and if true on all ranks: the backend also measures how many flows of the links
  /// between hosts to use. Otherwise it uses all.
  bool measures_flows = false;
  /// For each rank, a number that is the same for all ranks of its host. Empty: there is one host.
  std::vector<int> hosts;
  /// This rank's arena, which its peers on the host received with their links; may be null.
  std::shared_ptr<transport::Arena> arena;
  /// Bytes of a tensor from which its memory may be lent, on two and more ranks.
  std::size_t lent_from = kLentFrom;
  /// Whether inputs are kept until results are whole, and results until all ranks have theirs.
  /// If false, a failure destroys tensors reduced in place: only for measuring the cost of this.
  bool recoverable = true;
  /// The agreement of the ranks of a view.
  struct Negotiated {
    bool eager = false;  ///< small calls are eager
    plan::Thresholds thresholds;
    std::size_t segment_bytes = 0;
  };
  /// For the backend of a group of ranks, which negotiates nothing: the agreement of their view.
  std::optional<Negotiated> negotiated = {};
};

/// The library's own backend, always present: runs plans on the links of `mesh`, for the view
/// `generation`.
std::unique_ptr<Backend> make_native_backend(std::uint64_t generation,
                                             std::shared_ptr<transport::Mesh> mesh,
                                             const NativeOptions& options = {});

}  // namespace elastic::collectives
