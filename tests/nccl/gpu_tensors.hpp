#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "contract/calls.hpp"
#include "cuda/driver_calls.hpp"

namespace elastic::collectives::nccl {

/// The tensors of one rank on a device, as a lane gives them to a backend: each with the rank's
/// contribution of its type. Also what a lane does with the result.
class GpuTensors final : private DeviceTensors {
 public:
  struct Shape {
    DType dtype = DType::kF32;
    std::size_t count = 0;
    Wire wire{dtype};
  };
  /// Tensors are in place on odd ranks.
  GpuTensors(const testing::Gpu& gpu, int rank, std::vector<Shape> shapes);

  Call call(ReduceOp op) const;
  /// Gives the tensors to the backend in place; `device` -1: they are not on one.
  void give(Payload& payload, int device = 0);
  /// Brings the result to the outputs; from host memory, where `payload` has it there.
  Status take(Payload& payload, ReduceOp op, int size);

  /// Whether the outputs are what so many ranks have contributed, and the inputs what they were.
  void expect(ReduceOp op, int size) const;
  /// Whether the inputs are what they were.
  void expect_untouched() const;
  /// Whether there is something else in the first output than at the beginning.
  bool has_written_output() const;
  int times_on_host() const { return times_on_host_; }

 private:
  int device() const override { return device_; }
  std::span<const DeviceTensor> tensors() const override { return tensors_; }
  Status to_host(Payload& payload) override;

  std::vector<std::byte> read(std::uint64_t address, std::size_t bytes) const;

  const testing::Gpu& gpu_;
  const int rank_;
  const std::vector<Shape> shapes_;
  std::vector<testing::GpuArray<std::byte>> memory_;
  std::vector<DeviceTensor> tensors_;
  std::vector<Section> sections_;
  int device_ = 0;
  int times_on_host_ = 0;
};

}  // namespace elastic::collectives::nccl
