#pragma once

#include <memory>
#include <vector>

#include "nccl/gpu_tensors.hpp"
#include "nccl/nccl_fixture.hpp"

namespace elastic::collectives::nccl {

/// Allreduces of tensors on a device by all ranks of a view, and whether their results are right.
class NcclAllreduceFixture : public NcclFixture {
 protected:
  using Shapes = std::vector<GpuTensors::Shape>;

  /// The outcome of an allreduce on all ranks.
  struct Outcome {
    std::vector<std::unique_ptr<GpuTensors>> tensors;
    std::vector<Payload> payloads;
    std::vector<Status> statuses;

    bool by_nccl() const { return payloads.front().device_result() != nullptr; }
  };

  /// Tensors of which some travel as halves.
  static Shapes with_casts();

  std::unique_ptr<Outcome> begin(const Shapes& shapes);
  void run_on(int rank, Outcome& outcome, ReduceOp op);
  std::unique_ptr<Outcome> run(const Shapes& shapes, ReduceOp op);
  /// Expects success, in the same way on all ranks, and right results; whether it was NCCL's.
  bool expect_right(Outcome& outcome, ReduceOp op);
  bool allreduce(const Shapes& shapes = {{DType::kF32, 1003}}, ReduceOp op = ReduceOp::kSum);
};

}  // namespace elastic::collectives::nccl
