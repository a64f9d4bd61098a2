#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/collective.hpp"
#include "benchmarks/collective_options.hpp"
#include "benchmarks/peers/peer.hpp"
#include "benchmarks/rank_device.hpp"

namespace elastic::bench {

/// Elements of each size of the table: whole multiples of what the operation works on, each once.
std::vector<std::size_t> counts_of(const CollectiveOptions& options, const Collective& collective,
                                   int ranks);

/// The tensors that are measured with: the same memory for all backends and sizes. Belongs to the
/// main thread.
class Workspace {
 public:
  /// `context` is asked for the memory where the options say so; `device`, unless it is null, for
  /// memory of its own.
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
  const Memory input_;
  const Memory output_;
};

/// Measures one operation, on one context or of a peer whose ranks meet in it. Belongs to the main
/// thread. All ranks call its functions alike; they return kPeerLost when a worker was lost, and
/// throw elastic::Error and what a peer throws.
class CollectiveProbe {
 public:
  /// `peer` may be null, and so is `device` where tensors lie in host memory.
  CollectiveProbe(Context& context, Peer* peer, Collective& collective, const RankDevice* device)
      : context_(context), peer_(peer), collective_(collective), device_(device) {}

  /// Adds the times of `calls` calls, in microseconds, each the mean over the ranks, after `warmup`
  /// that do not count.
  Status time(const CallData& data, Placement placement, int warmup, int calls,
              std::vector<double>& times_us);

  /// Wrong elements on all ranks, in a call of its own.
  Result<std::int64_t> count_wrong(const CallData& data, Placement placement);

 private:
  void fill(const CallData& data) const;
  Result<PreparedCall> prepare(const CallData& data, Placement placement);

  Context& context_;
  Peer* const peer_;
  Collective& collective_;
  const RankDevice* const device_;
};

}  // namespace elastic::bench
