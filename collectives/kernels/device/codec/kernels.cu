// The kernels that encode and decode gradients: loops over steps.hpp. They are loaded by the
// driver, by their names (kernel_names.hpp). Compiled without contraction of products and sums.
#include <cstdint>

#include "collectives/kernels/device/codec/steps.hpp"

using namespace elastic::kernels::codec;

namespace {

/// Calls `step` with each number below `count`, shared between all threads of the launch.
template <class Step>
__device__ void for_each(std::uint64_t count, const Step& step) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count;
       at += threads) {
    step(at);
  }
}

/// The greatest of all threads of the block, for all of them. Also a barrier.
__device__ std::uint32_t greatest_of_block(std::uint32_t mine) {
  __shared__ std::uint32_t greatest;
  __syncthreads();
  if (threadIdx.x == 0) greatest = 0;
  __syncthreads();
  for (unsigned lanes = 16; lanes > 0; lanes /= 2) {
    mine = max(mine, __shfl_xor_sync(0xffffffffU, mine, lanes));
  }
  if (threadIdx.x % 32 == 0) atomicMax(&greatest, mine);
  __syncthreads();
  return greatest;
}

/// The sum over the threads of the block in front of this one. `total` is that of all.
__device__ Chosen sum_before(Chosen mine, Chosen& total) {
  __shared__ Chosen sums[kThreads];
  const std::uint32_t me = threadIdx.x;
  __syncthreads();
  sums[me] = mine;
  __syncthreads();
  for (std::uint32_t distance = 1; distance < kThreads; distance *= 2) {
    Chosen other{0, 0};
    if (me >= distance) other = sums[me - distance];
    __syncthreads();
    sums[me].above += other.above;
    sums[me].equal += other.equal;
    __syncthreads();
  }
  total = sums[kThreads - 1];
  return {sums[me].above - mine.above, sums[me].equal - mine.equal};
}

}  // namespace

extern "C" {

__global__ void elastic_encode_half(EncodeHalf p) {
  with_types(p, [&]<typename T, typename Half>(T, Half) {
    for_each(p.count, [&](std::uint64_t at) { encode_half<T, Half>(p, at); });
  });
}

__global__ void elastic_decode_half(DecodeHalf p) {
  with_types(p, [&]<typename T, typename Half>(T, Half) {
    for_each(p.count, [&](std::uint64_t at) { decode_half<T, Half>(p, at); });
  });
}

__global__ void elastic_divide(Divide p) {
  for_each(p.count, [&](std::uint64_t at) {
    if (p.is_double) {
      divide<double>(p, at);
    } else {
      divide<float>(p, at);
    }
  });
}

__global__ void elastic_stage(Stage p) {
  for_each(p.count, [&](std::uint64_t at) { stage(p, at); });
}

/// A block of threads for each block of int8, in turns. A thread reads again only what it has read.
__global__ void elastic_encode_int8(EncodeInt8 p) {
  const std::uint64_t blocks = blocks_of(p.count, p.block);
  for (std::uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const std::uint64_t first = block * p.block;
    const std::uint64_t end = first + p.block < p.count ? first + p.block : p.count;
    std::uint32_t most = 0;
    for (std::uint64_t at = first + threadIdx.x; at < end; at += blockDim.x) {
      most = max(most, magnitude_bits(p.values[at]));
    }
    const float scale = int8_scale(greatest_of_block(most));
    if (threadIdx.x == 0) write_int8_scale(p, block, scale);
    for (std::uint64_t at = first + threadIdx.x; at < end; at += blockDim.x) {
      encode_int8(p, at, scale);
    }
  }
}

__global__ void elastic_encode_whole(EncodeWhole p) {
  for_each(p.count, [&](std::uint64_t at) { encode_whole(p, at); });
}

/// One block of kDigits threads.
__global__ void elastic_begin_top_k(EncodeTopK p) {
  p.selection->counts[threadIdx.x] = 0;
  if (threadIdx.x == 0) p.selection->least = 0;
  if (threadIdx.x == 0) p.selection->left = p.sent;
}

__global__ void elastic_count_digits(EncodeTopK p) {
  __shared__ std::uint32_t counts[kDigits];
  for (std::uint32_t digit = threadIdx.x; digit < kDigits; digit += blockDim.x) counts[digit] = 0;
  __syncthreads();
  const std::uint32_t least = p.selection->least;
  for_each(p.count, [&](std::uint64_t at) {
    const std::uint32_t magnitude = magnitude_bits(p.values[at]);
    if (may_be_least(magnitude, least, p.pass)) atomicAdd(&counts[digit_of(magnitude, p.pass)], 1U);
  });
  __syncthreads();
  for (std::uint32_t digit = threadIdx.x; digit < kDigits; digit += blockDim.x) {
    if (counts[digit] != 0) atomicAdd(&p.selection->counts[digit], counts[digit]);
  }
}

/// One block of kDigits threads. The counts are 0 for the next pass.
__global__ void elastic_take_digit(EncodeTopK p) {
  __shared__ std::uint32_t counts[kDigits];
  counts[threadIdx.x] = p.selection->counts[threadIdx.x];
  p.selection->counts[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x == 0) take_digit(counts, p.pass, *p.selection);
}

/// A block of kThreads threads for each part, in turns.
__global__ void elastic_count_chosen(EncodeTopK p) {
  const std::uint64_t parts = parts_of(p.count);
  for (std::uint64_t part = blockIdx.x; part < parts; part += gridDim.x) {
    const std::uint64_t first = part * kPart + threadIdx.x * kRun;
    const Chosen mine =
        count_chosen(p.values, first, end_of_run(first, p.count), p.selection->least);
    Chosen total;
    sum_before(mine, total);
    if (threadIdx.x == 0) p.parts[part] = total;
  }
}

/// Replaces each part's counts by those of all parts in front of it. One block of kThreads threads.
__global__ void elastic_place_parts(EncodeTopK p) {
  const std::uint64_t parts = parts_of(p.count);
  Chosen before{0, 0};
  for (std::uint64_t first = 0; first < parts; first += kThreads) {
    const std::uint64_t part = first + threadIdx.x;
    const Chosen mine = part < parts ? p.parts[part] : Chosen{0, 0};
    Chosen total;
    const Chosen within = sum_before(mine, total);
    if (part < parts) p.parts[part] = {before.above + within.above, before.equal + within.equal};
    before.above += total.above;
    before.equal += total.equal;
  }
}

/// As elastic_count_chosen.
__global__ void elastic_write_chosen(EncodeTopK p) {
  const std::uint64_t parts = parts_of(p.count);
  for (std::uint64_t part = blockIdx.x; part < parts; part += gridDim.x) {
    const std::uint64_t first = part * kPart + threadIdx.x * kRun;
    const std::uint64_t end = end_of_run(first, p.count);
    Chosen total;
    Chosen before = sum_before(count_chosen(p.values, first, end, p.selection->least), total);
    before.above += p.parts[part].above;
    before.equal += p.parts[part].equal;
    write_chosen(p.values, p.momentum, first, end, *p.selection, before, p.sent, p.bytes);
  }
}

__global__ void elastic_clear(Clear p) {
  for_each(p.count, [&](std::uint64_t at) { clear(p, at); });
}

__global__ void elastic_add_dense(AddDense p) {
  for_each(p.count, [&](std::uint64_t at) { add_dense(p, at); });
}

__global__ void elastic_add_top_k(AddTopK p) {
  for_each(p.sent, [&](std::uint64_t at) { add_top_k(p, at); });
}

__global__ void elastic_rescale(Rescale p) {
  for_each(p.count, [&](std::uint64_t at) { rescale(p, at); });
}
}
