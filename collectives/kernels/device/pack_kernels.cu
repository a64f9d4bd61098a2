#include <cstdint>
#include <type_traits>

#include "collectives/kernels/device/chunk_move.cuh"
#include "collectives/kernels/device/elements.cuh"
#include "collectives/kernels/device/pack_parameters.hpp"

namespace elastic::kernels::device {

namespace {

struct Table {
  const std::uint64_t* offsets;
  const std::uint64_t* addresses;
  const std::uint32_t* first_chunks;
};

__device__ Table table_of(const PackParameters& parameters) {
  if (parameters.table == nullptr) {
    return {parameters.offsets, parameters.addresses, parameters.first_chunks};
  }
  const std::uint64_t* const addresses = parameters.table + parameters.rows + 1;
  return {parameters.table, addresses,
          reinterpret_cast<const std::uint32_t*>(addresses + parameters.rows)};
}

/// The last row that begins with `chunk` or before it; the first one does. All threads of the block
/// look together, each at the first of as many rows as the others: for 256 rows once, for 65536
/// twice.
__device__ std::uint32_t row_of(const Table& table, std::uint32_t rows, std::uint32_t chunk) {
  std::uint32_t first = 0;
  while (rows > 1) {
    const std::uint32_t step = (rows + kThreads - 1) / kThreads;
    const std::uint32_t mine = threadIdx.x * step;
    const bool begun = mine < rows && table.first_chunks[first + mine] <= chunk;
    const auto begun_before = static_cast<std::uint32_t>(__syncthreads_count(begun)) - 1;
    first += begun_before * step;
    rows = min(step, rows - begun_before * step);
  }
  return first;
}

/// One chunk for each block.
template <typename From, typename To, class Convert>
__device__ void move_block(const PackParameters& parameters, const Convert& convert) {
  const std::uint32_t chunk = parameters.first_chunk + blockIdx.x;
  const Table table = table_of(parameters);
  const std::uint32_t row = row_of(table, parameters.rows, chunk);
  const std::uint64_t offset = table.offsets[row];
  const std::uint64_t count = table.offsets[row + 1] - offset;
  const bool unpacks = parameters.unpacks;
  const std::uint64_t in_bucket =
      parameters.bucket + offset * (unpacks ? sizeof(From) : sizeof(To));
  const std::uint64_t from = unpacks ? in_bucket : table.addresses[row];
  const std::uint64_t to = unpacks ? table.addresses[row] : in_bucket;
  const Access access = access_between(from, sizeof(From), to, sizeof(To));
  const Chunk mine =
      chunk_at(chunk - table.first_chunks[row], count, access.head, parameters.chunk_elements);
  move_chunk<From, To>(from, to, mine, access, convert);
}

__global__ void __launch_bounds__(kThreads)
    copy_rows(const __grid_constant__ PackParameters parameters) {
  move_block<std::uint8_t, std::uint8_t>(parameters, Copy());
}

template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    convert_rows(const __grid_constant__ PackParameters parameters) {
  if constexpr (std::is_integral_v<From>) {
    move_block<From, To>(parameters, Division<From>(parameters.scale));
  } else {
    move_block<From, To>(parameters, Conversion<From, To>(parameters.scale));
  }
}

using Kernel = void (*)(const PackParameters);

template <typename Tensor, typename Bucket>
Kernel kernel_between(bool unpacks) {
  return unpacks ? convert_rows<Bucket, Tensor> : convert_rows<Tensor, Bucket>;
}

template <typename Tensor>
Kernel cast_kernel_of(DType bucket, bool unpacks) {
  if (bucket == DType::kF16) return kernel_between<Tensor, float16>(unpacks);
  if (bucket == DType::kBF16) return kernel_between<Tensor, bfloat16>(unpacks);
  return convert_rows<Tensor, Tensor>;
}

Kernel kernel_for(DType tensor, DType bucket, bool is_copy, bool unpacks) {
  if (is_copy) return copy_rows;
  switch (tensor) {
    case DType::kF16:
      return convert_rows<float16, float16>;
    case DType::kBF16:
      return convert_rows<bfloat16, bfloat16>;
    case DType::kF32:
      return cast_kernel_of<float>(bucket, unpacks);
    case DType::kF64:
      return cast_kernel_of<double>(bucket, unpacks);
    case DType::kI8:
      return convert_rows<std::int8_t, std::int8_t>;
    case DType::kU8:
    case DType::kBool:
      return convert_rows<std::uint8_t, std::uint8_t>;
    case DType::kI32:
      return convert_rows<std::int32_t, std::int32_t>;
    case DType::kU32:
      return convert_rows<std::uint32_t, std::uint32_t>;
    case DType::kU64:
      return convert_rows<std::uint64_t, std::uint64_t>;
    case DType::kI16:
      return convert_rows<std::int16_t, std::int16_t>;
    case DType::kU16:
      return convert_rows<std::uint16_t, std::uint16_t>;
    case DType::kI64:
      break;
  }
  return convert_rows<std::int64_t, std::int64_t>;
}

}  // namespace

cudaError_t load_pack(DType tensor_dtype, DType bucket_dtype, bool is_copy, bool unpacks) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes,
                               kernel_for(tensor_dtype, bucket_dtype, is_copy, unpacks));
}

cudaError_t launch_pack(DType tensor_dtype, DType bucket_dtype, bool is_copy,
                        const PackParameters& parameters, std::uint32_t blocks,
                        cudaStream_t stream) {
  const Kernel kernel = kernel_for(tensor_dtype, bucket_dtype, is_copy, parameters.unpacks);
  PackParameters by_value = parameters;
  void* arguments[] = {&by_value};
  return cudaLaunchKernel(kernel, dim3(blocks), dim3(kThreads), arguments, 0, stream);
}

}  // namespace elastic::kernels::device
