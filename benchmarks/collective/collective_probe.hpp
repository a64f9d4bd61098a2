#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/collective/collective.hpp"
#include "benchmarks/collective/collective_options.hpp"
#include "benchmarks/job/rank_device.hpp"
#include "benchmarks/peers/peer.hpp"

namespace elastic::bench {

/// The element counts of the table's sizes, rounded to the operation's granularity, each once.
std::vector<std::size_t> counts_of(const CollectiveOptions& options, const Collective& collective,
                                   int ranks);

/// The tensors of the measurement, in the same memory for all backends and sizes. Owned by the main
/// thread.
class Workspace {
 public:
  /// Allocates from `device` if that is not null, from `context` if the options say "allocated",
  /// otherwise by malloc.
  Workspace(const CollectiveOptions& options, const Collective& collective, Context& context,
            const RankDevice* device);

  const std::vector<std::size_t>& counts() const { return counts_; }
  CallData data(std::size_t count);

 private:
  const RankDevice* const device_;
  const DType dtype_;
  const ReduceOp op_;
  const int rank_;
  const int ranks_;
  const Pattern pattern_;
  std::vector<std::size_t> counts_;
  const Allocation input_;
  const Allocation output_;
};

/// Measures one operation, of elastic on one context or of a peer with a context for its barriers.
/// Owned by the main thread. All ranks call its functions with the same arguments. They return
/// kPeerLost if a worker was lost, and throw elastic::Error and the exceptions of the peer.
class CollectiveProbe {
 public:
  /// `peer` is null to measure elastic. `device` is null if the tensors are in host memory.
  /// `apart`: see CollectiveOptions.
  CollectiveProbe(Context& context, Peer* peer, Collective& collective, const RankDevice* device,
                  bool apart)
      : context_(context), peer_(peer), collective_(collective), device_(device), apart_(apart) {}

  /// Makes `warmup` calls, then `calls` calls, and appends the time of each of the latter: the mean
  /// over the ranks, or of calls apart the greatest, in microseconds.
  Status time(const CallData& data, Placement placement, int warmup, int calls,
              std::vector<double>& times_us);

  /// The number of wrong elements on all ranks, after a further call.
  Result<std::int64_t> count_wrong(const CallData& data, Placement placement);

 private:
  void fill(const CallData& data) const;
  Result<PreparedCall> prepare(const CallData& data, Placement placement);

  Context& context_;
  Peer* const peer_;
  Collective& collective_;
  const RankDevice* const device_;
  const bool apart_;
};

}  // namespace elastic::bench
