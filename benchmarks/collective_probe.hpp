#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "benchmarks/collective.hpp"
#include "benchmarks/collective_options.hpp"

namespace elastic::bench {

/// The tensors that are measured with: the same memory for all backends and sizes. Belongs to the
/// main thread.
class Workspace {
 public:
  Workspace(const CollectiveOptions& options, const Collective& collective, int rank, int ranks);

  /// Elements of each size of the table: whole multiples of what the operation works on, each once.
  const std::vector<std::size_t>& counts() const { return counts_; }
  CallData data(std::size_t count);

 private:
  const DType dtype_;
  const ReduceOp op_;
  const int rank_;
  const int ranks_;
  const Pattern pattern_;
  std::vector<std::size_t> counts_;
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
};

/// Measures one operation on one context. Belongs to the main thread. All ranks call its functions
/// alike; they return kPeerLost when a worker was lost, and throw elastic::Error.
class CollectiveProbe {
 public:
  CollectiveProbe(Context& context, Collective& collective)
      : context_(context), collective_(collective) {}

  /// Adds the times of `calls` calls, in microseconds, each the mean over the ranks, after `warmup`
  /// that do not count.
  Status time(const CallData& data, Placement placement, int warmup, int calls,
              std::vector<double>& times_us);

  /// Wrong elements on all ranks, in a call of its own.
  Result<std::int64_t> count_wrong(const CallData& data, Placement placement);

 private:
  Status call(const CallData& data, Placement placement);

  Context& context_;
  Collective& collective_;
};

}  // namespace elastic::bench
