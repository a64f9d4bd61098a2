#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "contract/calls.hpp"
#include "cuda/driver_calls.hpp"

namespace elastic::collectives::nccl {

/// Where the result of an allgather or a reduce_scatter goes.
enum class Place : std::uint8_t {
  kOutOfPlace,
  kInPlace,   ///< NCCL's form: of an allgather the input is this rank's block in the output; of a
              ///< reduce_scatter the output is this rank's part of the input
  kOverlaps,  ///< one element further, with a part of the one out of the other
  kTooSmall,  ///< for an output with room for an element less
};

/// A broadcast, an allgather or a reduce_scatter, and how many elements each rank gives to it.
struct Move {
  Kind kind = Kind::kBroadcast;
  DType dtype = DType::kF32;
  std::vector<std::size_t> counts;  ///< alike but for an allgather
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  Place place = Place::kOutOfPlace;
};

/// The tensor of one rank on a device, with its contribution, as a lane gives it to a backend, and
/// where its result comes. Also what a lane does with that.
class GpuMove final : private DeviceTensors {
 public:
  GpuMove(const testing::Gpu& gpu, int rank, Move move);

  Call call() const;
  /// Gives the tensor to the backend in place; `device` -1: it is not on one.
  void give(Payload& payload, int device = 0);
  /// Brings the result to the output; from host memory, where `payload` has it there.
  Status take(Payload& payload);

  /// That of the output, and that nothing is written behind it. An input that the output does not
  /// overlap has not changed.
  void expect_right(const Payload& payload) const;
  void expect_untouched() const;
  void expect_intact_input() const;
  /// Whether there is something else in the output than at the beginning.
  bool has_written_output() const;
  int times_on_host() const { return times_on_host_; }

 private:
  int device() const override { return device_; }
  std::span<const DeviceTensor> tensors() const override { return {&tensor_, 1}; }
  Status to_host(Payload& payload) override;

  void place_tensor();
  bool is_root() const { return move_.kind == Kind::kBroadcast && rank_ == move_.root; }
  int size() const { return static_cast<int>(move_.counts.size()); }
  std::vector<std::uint64_t> result_counts() const;
  std::vector<std::byte> result() const;
  std::vector<std::byte> given() const;
  std::vector<std::byte> read(std::uint64_t from, std::size_t bytes) const;

  const testing::Gpu& gpu_;
  const int rank_;
  const Move move_;
  const std::size_t element_;
  // With room for what a call needs, and some elements more.
  testing::GpuArray<std::byte> input_;
  testing::GpuArray<std::byte> output_;  // but of a broadcast, which has its own tensor
  DeviceTensor tensor_;
  std::vector<std::byte> output_before_;
  int device_ = 0;
  int times_on_host_ = 0;
};

}  // namespace elastic::collectives::nccl
