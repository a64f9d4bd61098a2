#include "collectives/kernels/device/packer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "collectives/kernels/device/device_scale.hpp"
#include "collectives/kernels/device/pack_parameters.hpp"

namespace elastic::kernels::device {

namespace {

constexpr std::size_t table_bytes(std::size_t rows) {
  return (rows + 1) * sizeof(std::uint64_t) + rows * sizeof(std::uint64_t) +
         rows * sizeof(std::uint32_t);
}

template <typename T>
std::byte* append(std::byte* at, std::span<const T> values) {
  std::memcpy(at, values.data(), values.size_bytes());
  return at + values.size_bytes();
}

/// As PackParameters::table describes it.
void write_table(std::byte* at, const PackPlan& plan) {
  at = append(at, std::span(plan.offsets));
  at = append(at, std::span(plan.addresses));
  append(at, std::span(plan.first_chunks).first(plan.rows()));
}

PackParameters parameters_of(const PackPlan& plan) {
  PackParameters parameters;
  parameters.bucket = plan.bucket;
  parameters.scale = device_scale(plan.scale);
  parameters.chunk_elements = plan.chunk_elements;
  parameters.unpacks = plan.direction == Direction::kUnpack;
  return parameters;
}

cudaError_t launch_chunks(const PackPlan& plan, const PackParameters& parameters,
                          std::uint32_t chunks, cudaStream_t stream) {
  if (chunks == 0) return cudaSuccess;
  return launch_pack(plan.tensor_dtype, plan.bucket_dtype, plan.is_copy(), parameters, chunks,
                     stream);
}

/// With the table in the parameters of a kernel, or of as many as it takes.
cudaError_t launch_with_parameters(const PackPlan& plan, cudaStream_t stream) {
  PackParameters parameters = parameters_of(plan);
  for (std::size_t first = 0; first < plan.rows(); first += kParameterRows) {
    const std::size_t rows = std::min<std::size_t>(plan.rows() - first, kParameterRows);
    std::copy_n(plan.offsets.begin() + static_cast<std::ptrdiff_t>(first), rows + 1,
                parameters.offsets);
    std::copy_n(plan.addresses.begin() + static_cast<std::ptrdiff_t>(first), rows,
                parameters.addresses);
    std::copy_n(plan.first_chunks.begin() + static_cast<std::ptrdiff_t>(first), rows,
                parameters.first_chunks);
    parameters.rows = static_cast<std::uint32_t>(rows);
    parameters.first_chunk = plan.first_chunks[first];
    const std::uint32_t chunks = plan.first_chunks[first + rows] - parameters.first_chunk;
    const cudaError_t error = launch_chunks(plan, parameters, chunks, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t launch_with_slot(const PackPlan& plan, const TableSlot& slot, cudaStream_t stream) {
  write_table(slot.host(), plan);
  const cudaError_t error = cudaMemcpyAsync(slot.device(), slot.host(), table_bytes(plan.rows()),
                                            cudaMemcpyHostToDevice, stream);
  if (error != cudaSuccess) return error;
  PackParameters parameters = parameters_of(plan);
  parameters.rows = static_cast<std::uint32_t>(plan.rows());
  parameters.table = static_cast<const std::uint64_t*>(slot.device());
  return launch_chunks(plan, parameters, plan.chunks(), stream);
}

}  // namespace

cudaError_t Packer::launch(const PackPlan& plan, cudaStream_t stream) {
  if (plan.chunks() == 0) return cudaSuccess;
  if (plan.rows() <= kParameterRows) return launch_with_parameters(plan, stream);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaError_t error = cudaStreamIsCapturing(stream, &capture);
  if (error != cudaSuccess) return error;
  if (capture != cudaStreamCaptureStatusNone) return launch_with_parameters(plan, stream);
  TableSlot* slot = nullptr;
  error = slots_.find(table_bytes(plan.rows()), slot);
  if (error != cudaSuccess) return error;
  error = launch_with_slot(plan, *slot, stream);
  // Also what was put on the stream before an error has to end before the slot is used again.
  const cudaError_t released = slot->release_after(stream);
  return error != cudaSuccess ? error : released;
}

cudaError_t Packer::prepare(const PackPlan& plan, std::size_t launches) {
  const cudaError_t error = load_pack(plan.tensor_dtype, plan.bucket_dtype, plan.is_copy(),
                                      plan.direction == Direction::kUnpack);
  if (error != cudaSuccess || plan.rows() <= kParameterRows) return error;
  return slots_.reserve(table_bytes(plan.rows()), launches);
}

}  // namespace elastic::kernels::device
