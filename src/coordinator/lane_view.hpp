#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "collectives/transport/mesh.hpp"
#include "coordinator/ledger.hpp"
#include "elastic/results.hpp"

namespace elastic::coordinator {

/// The workers of a view, in rank order. Immutable and shared by the view's lanes.
struct Members {
  std::uint64_t generation = 0;
  int rank = 0;  ///< of this worker
  std::vector<std::string> incarnations;
  std::vector<bool> synced;  ///< by rank: had the job's state when the view was decided
  std::vector<int> hosts;    ///< by rank: a number that is the same for all ranks of a host
  std::shared_ptr<const std::vector<WorkerId>> ids;

  int size() const { return static_cast<int>(incarnations.size()); }
  /// The rank of an incarnation; -1 if it is not a member.
  int rank_of(const std::string& incarnation) const;
  /// The rank of a worker; -1 if it is not a member.
  int rank_of(WorkerId worker) const;
  std::vector<int> ranks_of(const std::vector<std::string>& of) const;
  /// Assigns the takers to the holders in turn, so that no holder serves all of them.
  collectives::Backend::HandoverPairs handover_pairs(const std::vector<std::string>& holders,
                                                     const std::vector<std::string>& takers) const;
  /// The rank of the first donor of state: the oldest member that has it. Before the first
  /// synchronisation no member has the state, and rank 0 gives it.
  int first_synced() const;
  Contributors contributors() const { return {ids, generation}; }
};

/// A view as one lane sees it. Each view makes a new LaneView per lane. Only the thread that owns
/// the lane touches the backend and the mesh.
struct LaneView {
  std::shared_ptr<const Members> members;
  std::shared_ptr<transport::Mesh> mesh;
  bool all_linked = true;  ///< every rank has links with all others from the start
  std::unique_ptr<collectives::Backend> backend;

  /// The lane's position after the hand-over; see rendezvous::LaneDecision.
  std::uint64_t position = 0;
  collectives::Backend::HandoverPairs handover;  ///< of the result of operation position - 1
  std::vector<int> holders;  ///< with a hand-over: all ranks that have the result
  bool lost = false;         ///< operation `position` ends in kRootLost

  std::uint64_t generation() const { return members->generation; }
  bool sends() const;  ///< this worker is a holder that sends the result
  bool takes() const;  ///< this worker is a taker
  /// All ranks that are in the call of operation `done`, which has completed here with an error as
  /// its result. In the view in which it completed these are all ranks. In a later view they are
  /// the ranks that hold or take the result; ranks that have joined since are not in the call.
  std::vector<int> ranks_in_call(std::uint64_t done) const;
  LaneOrders orders() const;
};

}  // namespace elastic::coordinator
