#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/nccl/communicator/communicator.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

/// The exchanges of the ranks that make a communicator: of NCCL's id or of the communicators that
/// could be shrunk, and later whether NCCL has made it. A failure on one rank is the same error on
/// all.
///
/// Owned by the thread that makes the communicator.
class Bootstrap {
 public:
  /// `plan` must outlive this.
  explicit Bootstrap(const CommunicatorPlan& plan) : plan_(plan) {}

  /// NCCL's id: rank 0 has NCCL write it before `meet`.
  ncclUniqueId& id() { return id_; }
  /// Sends the id of rank 0 to all ranks, and finds ranks that share a device. `own`: the reason
  /// why this rank cannot have a communicator, or ok. `old`: the view of this rank's retired
  /// communicator, and whether that can be shrunk. Rank 0 sends an id only if it has none.
  struct Offer {
    DecidedView view;
    bool usable = true;
  };
  Status meet(const Status& own, const std::optional<Offer>& old);
  /// After `meet`: how the ranks make the communicator.
  Making making() const { return making_; }
  /// For Making::kShrink: the ranks of the offered view that are not in the new one.
  const std::vector<int>& excluded() const { return excluded_; }
  /// Compares the outcomes of all ranks: `own` is this rank's.
  Status agree(const Status& own) const;

 private:
  Status read(const std::vector<std::string>& messages);

  const CommunicatorPlan& plan_;
  ncclUniqueId id_{};
  Making making_ = Making::kInit;
  std::vector<int> excluded_;
};

}  // namespace elastic::collectives::nccl
