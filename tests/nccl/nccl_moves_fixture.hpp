#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nccl/gpu_move.hpp"
#include "nccl/nccl_fixture.hpp"

namespace elastic::collectives::nccl {

/// Broadcasts, allgathers and reduce_scatters of tensors on a device by all ranks of a view, and
/// whether their results are right.
class NcclMovesFixture : public NcclFixture {
 protected:
  /// The outcome of a call on all ranks.
  struct Outcome {
    std::vector<std::unique_ptr<GpuMove>> tensors;
    std::vector<Payload> payloads;
    std::vector<Status> statuses;

    bool by_nccl() const { return payloads.front().device_result() != nullptr; }
  };

  std::vector<std::size_t> alike(std::size_t count) const {
    return std::vector<std::size_t>(static_cast<std::size_t>(size_), count);
  }
  Move broadcast(std::size_t count, int root) const {
    return {Kind::kBroadcast, DType::kF32, alike(count), ReduceOp::kSum, root};
  }
  Move allgather(std::vector<std::size_t> counts) const {
    return {Kind::kAllgather, DType::kF32, std::move(counts)};
  }
  Move reduce_scatter(std::size_t count, ReduceOp op = ReduceOp::kSum) const {
    return {Kind::kReduceScatter, DType::kF32, alike(count), op};
  }
  /// A typical call of each kind.
  Move of(Kind kind) const;

  std::unique_ptr<Outcome> begin(const Move& move);
  void run_on(int rank, Outcome& outcome);
  void run(Outcome& outcome);
  /// Expects success, in the same way on all ranks, and right results; whether it was NCCL's.
  static bool expect_right(Outcome& outcome);
  bool perform(const Move& move);
};

}  // namespace elastic::collectives::nccl
