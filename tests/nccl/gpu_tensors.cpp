#include "nccl/gpu_tensors.hpp"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "collectives/kernels/cast.hpp"
#include "collectives/kernels/reduce.hpp"
#include "nccl/contents.hpp"

namespace elastic::collectives::nccl {

namespace {

/// The expected result. It divides as the host does.
std::vector<std::byte> result_of(DType dtype, std::size_t count, ReduceOp op, int size) {
  std::vector<std::byte> result =
      bytes_of(dtype, combined(size, count, dtype, op == ReduceOp::kAverage ? ReduceOp::kSum : op));
  if (op == ReduceOp::kAverage) {
    kernels::divide(dtype, result.data(), count, static_cast<std::uint32_t>(size));
  }
  return result;
}

}  // namespace

GpuTensors::GpuTensors(const testing::Gpu& gpu, int rank, std::vector<Shape> shapes)
    : gpu_(gpu), rank_(rank), shapes_(std::move(shapes)) {
  std::size_t at = 0;
  for (const Shape& shape : shapes_) {
    memory_.emplace_back(gpu_, bytes_of(shape.dtype, contribution(rank, shape.count, shape.dtype)));
    const std::uint64_t input = memory_.back().address();
    std::uint64_t output = input;
    if (rank % 2 == 0) {
      memory_.emplace_back(gpu_, std::vector<std::byte>(shape.count * size_of(shape.dtype)));
      output = memory_.back().address();
    }
    at = aligned(at);
    sections_.push_back({shape.wire.dtype, shape.count, at});
    tensors_.push_back({shape.dtype, shape.count, input, output, at, shape.wire,
                        shape.count * size_of(shape.dtype)});
    at += tensors_.back().bytes_of_wire();
  }
}

Call GpuTensors::call(ReduceOp op) const {
  Call call = allreduce_call(shapes_.front().wire.dtype, shapes_.front().count, op);
  call.sections = sections_;
  return call;
}

void GpuTensors::give(Payload& payload, int device) {
  device_ = device;
  payload.clear();
  payload.form = OnDevice{this};
}

std::vector<std::byte> GpuTensors::read(std::uint64_t from, std::size_t bytes) const {
  std::vector<std::byte> content(bytes);
  gpu_.copy(address(content.data()), from, bytes);
  return content;
}

Status GpuTensors::to_host(Payload& payload) {
  ++times_on_host_;
  payload.data.resize(extent(sections_));
  for (const DeviceTensor& tensor : tensors_) {
    std::byte* const to = payload.data.data() + tensor.offset;
    if (tensor.is_cast()) {
      kernels::cast(tensor.dtype, read(tensor.input, tensor.bytes()).data(), tensor.count,
                    double{tensor.wire.scale}, tensor.wire.dtype, to);
    } else {
      gpu_.copy(address(to), tensor.input, tensor.bytes());
    }
  }
  return {};
}

Status GpuTensors::take(Payload& payload, ReduceOp op, int size) {
  if (const auto result = payload.device_result()) return unpack(gpu_, *result);
  for (const DeviceTensor& tensor : tensors_) {
    std::byte* const data = payload.data.data() + tensor.offset;
    if (tensor.is_cast()) {
      std::vector<std::byte> wide(tensor.bytes());
      kernels::widen(tensor.wire.dtype, data, tensor.count, 1 / double{tensor.wire.scale},
                     op == ReduceOp::kAverage ? static_cast<std::uint32_t>(size) : 1, tensor.dtype,
                     wide.data());
      gpu_.copy(tensor.output, address(wide.data()), wide.size());
      continue;
    }
    if (op == ReduceOp::kAverage) {
      kernels::divide(tensor.dtype, data, tensor.count, static_cast<std::uint32_t>(size));
    }
    gpu_.copy(tensor.output, address(data), tensor.bytes());
  }
  return {};
}

void GpuTensors::expect(ReduceOp op, int size) const {
  for (const DeviceTensor& tensor : tensors_) {
    SCOPED_TRACE(std::to_string(tensor.count) + " elements of type " +
                 std::to_string(static_cast<int>(tensor.dtype)));
    EXPECT_TRUE(read(tensor.output, tensor.bytes()) ==
                result_of(tensor.dtype, tensor.count, op, size))
        << "a wrong result on rank " << rank_;
    if (tensor.input == tensor.output) continue;
    EXPECT_TRUE(read(tensor.input, tensor.bytes()) ==
                bytes_of(tensor.dtype, contribution(rank_, tensor.count, tensor.dtype)))
        << "a changed input on rank " << rank_;
  }
}

bool GpuTensors::has_written_output() const {
  const DeviceTensor& tensor = tensors_.front();
  const std::vector<std::byte> before =
      tensor.input == tensor.output
          ? bytes_of(tensor.dtype, contribution(rank_, tensor.count, tensor.dtype))
          : std::vector<std::byte>(tensor.bytes());
  return read(tensor.output, tensor.bytes()) != before;
}

void GpuTensors::expect_untouched() const {
  for (const DeviceTensor& tensor : tensors_) {
    EXPECT_TRUE(read(tensor.input, tensor.bytes()) ==
                bytes_of(tensor.dtype, contribution(rank_, tensor.count, tensor.dtype)))
        << "a changed input on rank " << rank_;
  }
}

}  // namespace elastic::collectives::nccl
