#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "collectives/transport/mesh.hpp"
#include "coordinator/ledger.hpp"
#include "elastic/contributors.hpp"

namespace elastic::coordinator {

/// The workers of a view, in rank order. Immutable and shared by the view's lanes.
struct Members {
  std::uint64_t generation = 0;
  int rank = 0;  ///< this worker's
  std::vector<std::string> incarnations;
  std::vector<bool> synced;  ///< who had the job's state when the view was decided
  std::shared_ptr<const std::vector<WorkerId>> ids;

  int size() const { return static_cast<int>(incarnations.size()); }
  /// Rank of an incarnation, -1 if it is not a member.
  int rank_of(const std::string& incarnation) const;
  /// The member that state is taken from: the oldest that has it, or the oldest where nobody has.
  int first_synced() const;
  Contributors contributors() const { return {ids, generation}; }
};

/// A view as one lane sees it. Made anew for each view; the backend and the mesh belong to whoever
/// owns the lane.
struct LaneView {
  std::shared_ptr<const Members> members;
  std::shared_ptr<transport::Mesh> mesh;
  std::unique_ptr<collectives::Backend> backend;

  /// Where the lane stands after the hand-over: see rendezvous::LaneDecision.
  std::uint64_t position = 0;
  collectives::Backend::Handover handover;  ///< of operation position - 1
  std::vector<int> holders;  ///< where there is a hand-over: all ranks that have that result
  bool lost = false;         ///< operation `position` ends in kRootLost

  std::uint64_t generation() const { return members->generation; }
  bool gives() const;  ///< this worker has a result to hand over
  bool takes() const;  ///< this worker is to be handed one
  /// All ranks that are in the call of operation `done`, which is complete on this one with an
  /// error as its result. In the first view of that operation these are all ranks; in a later one
  /// those that hold or take the result, but not the ones that have joined since.
  std::vector<int> ranks_in_call(std::uint64_t done) const;
  LaneOrders orders() const;
};

}  // namespace elastic::coordinator
