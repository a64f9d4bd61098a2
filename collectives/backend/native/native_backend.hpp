#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/backend/backend.hpp"
#include "collectives/plan/choose.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives {

struct NativeOptions {
  /// Large data travels in pieces of this many bytes, each forwarded as soon as it has arrived.
  std::size_t segment_bytes = 256 * 1024;
  /// Pieces of a state transfer.
  std::size_t transfer_segment_bytes = 1024 * 1024;
  plan::Thresholds thresholds{};
};

/// The backend that is always there: plans, run on the links of `mesh`, for the view `generation`.
std::unique_ptr<Backend> make_native_backend(std::uint64_t generation,
                                             std::shared_ptr<transport::Mesh> mesh,
                                             const NativeOptions& options = {});

}  // namespace elastic::collectives
