#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/plan_cache.hpp"

namespace elastic::collectives {

/// The collectives that give each rank a result of its own, or only the root one. They may complete
/// on some ranks before others have started, and no rank has another's result: the caller ends each
/// with a barrier (rule R1 of docs/atomicity.md).
///
/// Afterwards the payload has the form Blocks: alltoall and gather with the elements from each
/// rank, scatter with those for each rank. Owned by the thread that runs the lane's operation.
class PersonalCollectives {
 public:
  PersonalCollectives(int rank, int size, Executor& executor, PlanCache& plans)
      : rank_(rank), size_(size), executor_(executor), plans_(plans) {}

  using Counts = std::vector<std::uint64_t>;

  /// `known`: the counts of all blocks of rank 0, then of rank 1, and so on, if they have been
  /// exchanged.
  Status alltoall(const Call& call, Payload& payload, const Counts* known);
  Status gather(const Call& call, Payload& payload, const Counts* known);
  Status scatter(const Call& call, Payload& payload, const Counts* known,
                 PlanCache::Meeting meeting);
  Status reduce(const Call& call, const Reducer& reducer, Payload& payload,
                PlanCache::Meeting meeting);
  /// Makes the part of this rank, of `result_bytes`, the data of the result.
  Status reduce_scatter(const Section& section, std::size_t result_bytes, const Reducer& reducer,
                        Payload& payload);
  Status scan(const Call& call, const Reducer& reducer, Payload& payload,
              PlanCache::Meeting meeting);

  /// Makes `counts` the count of each rank, of which this one has `own`. `known` is as above.
  Status share_count(std::uint64_t own, const Counts* known, Counts& counts);

  /// Runs a schedule from the input to the caller's room if there is enough, otherwise to other
  /// memory, which becomes the payload's. The payload has the form Blocks.
  Status move(const Schedule& schedule, std::size_t result_bytes, Payload& payload,
              const Reducer& reducer = {});

 private:
  Status tell_counts(const Counts& to, Counts& from);

  int rank_;
  int size_;
  Executor& executor_;
  PlanCache& plans_;
  Buffer spare_;  // takes the result, and is swapped with the input
};

}  // namespace elastic::collectives
