#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/native/eager_allreduce.hpp"
#include "collectives/transport/frame.hpp"

namespace elastic::collectives {

/// Small broadcasts, allgathers, alltoalls, gathers and scans on one host: every rank gives all
/// that it has to every other rank in its eager message. One exchange, after which every rank has
/// what every rank gave. So the result is the same for all ranks, as a holder can hand it over;
/// each takes its own part when it delivers it.
///
/// Blocks may differ in size, and may be too large on some ranks. A message of such a call begins
/// with the counts of its blocks, from which all ranks see whether all data has come. If not, the
/// counts have been exchanged all the same.
///
/// Owned by the thread that runs the lane's operation.
class EagerExchange {
 public:
  EagerExchange(int rank, int size, EagerAllreduce& eager)
      : rank_(rank), size_(size), eager_(eager) {}

  /// The content of this rank's eager message. Begins the exchange if the call takes part in it.
  std::span<const std::byte> begin(const Call& call, const Payload& payload);
  /// Whether the call takes part in the exchange: the same on all ranks.
  bool begun() const { return begun_; }

  /// Waits for the messages of all ranks. If all data has come, makes the result in `payload` and
  /// returns true: Payload::data has the data of all ranks, that of a broadcast only the root's,
  /// and Blocks::counts those of all blocks of rank 0, then of rank 1, and so on. Otherwise only
  /// `counts` are known.
  Result<bool> finish(const transport::OpTag& tag, const Call& call, Payload& payload);
  /// Those of rank 0 first. Empty if the messages of the call have none.
  const std::vector<std::uint64_t>& counts() const { return counts_; }

 private:
  std::span<const std::byte> message(int rank) const;
  bool read_counts(const Call& call);
  std::size_t data_bytes(const Call& call, int rank) const;
  bool all_data_came(const Call& call) const;
  void collect(const Call& call, Payload& payload) const;

  int rank_;
  int size_;
  EagerAllreduce& eager_;
  bool begun_ = false;
  std::vector<std::byte> own_;
  std::vector<std::uint64_t> counts_;  ///< of all ranks
};

}  // namespace elastic::collectives
