#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "elastic/gradient_compressor.hpp"

namespace elastic::testing {

using Tensor = std::vector<float>;

/// Ranks with a compressor each, in one thread. A call is made twice on every rank: first the
/// collective notes what the rank gives and fails, as after a loss; then it has the result.
class CompressingWorld {
 public:
  CompressingWorld(std::size_t ranks, const Compression& compression);

  /// The tensors of all ranks are replaced with the sums. Expects that the calls that fail change
  /// neither tensors nor residuals, and that all ranks have the same bits in the end.
  void allreduce(std::vector<std::vector<Tensor>>& tensors, ReduceOp op = ReduceOp::kSum);
  /// The same for one tensor: takes one per rank, returns rank 0's sum.
  Tensor allreduce(std::vector<Tensor> tensors, ReduceOp op = ReduceOp::kSum);

  /// The last ranks are lost, or new ones come.
  void resize(std::size_t ranks);

  GradientCompressor& rank(std::size_t rank) { return *compressors_[rank]; }
  static std::string name(std::size_t tensor) { return "tensor " + std::to_string(tensor); }

 private:
  void call(std::size_t rank, std::vector<Tensor>& tensors, ReduceOp op);
  void check_failure(std::size_t rank, std::vector<Tensor>& tensors, ReduceOp op);
  Contributors sum(std::size_t rank, std::span<const TensorView> tensors);
  Gathered<std::uint8_t> gather(std::size_t rank, std::span<const std::uint8_t> block);
  Contributors contributors() const;

  Compression compression_;
  bool fails_ = false;
  std::vector<std::vector<std::uint8_t>> given_;  // by rank: its block, or its tensors' bytes
  std::vector<std::unique_ptr<GradientCompressor>> compressors_;
};

}  // namespace elastic::testing
