#include "collectives/kernels/device/pack_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "collectives/kernels/device/pack_chunk.hpp"

namespace elastic::kernels::device {

namespace {

// A chunk of the most bytes is two passes of a block of 256 threads with four accesses of 16 bytes
// each: few enough to spread over the multiprocessors evenly, and enough to make up for what a
// block takes to start. Smaller buckets get smaller chunks, to have some for every multiprocessor.
constexpr std::uint64_t kMostChunkBytes = 32 << 10;
constexpr std::uint64_t kLeastChunkBytes = 4 << 10;
constexpr std::uint64_t kWantedChunks = 2048;
constexpr std::uint64_t kMostChunks = std::numeric_limits<std::int32_t>::max();

bool is_float(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

bool is_cast(DType tensor, DType bucket) {
  return (tensor == DType::kF32 || tensor == DType::kF64) &&
         (bucket == DType::kF16 || bucket == DType::kBF16);
}

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t tensor = 0;
};

std::uint64_t address_of(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

std::string name_of(const Range& range, std::size_t tensors) {
  return range.tensor == tensors ? "the bucket" : "tensor " + std::to_string(range.tensor);
}

bool is_in_place(const PackRequest& request, std::uint64_t at, std::uint64_t in_bucket) {
  return at == in_bucket && request.tensor_dtype == request.bucket_dtype;
}

/// The ranges that are moved, and the bucket as the last; without tensors that lie in their places
/// there.
std::vector<Range> ranges_of(const PackRequest& request) {
  const std::uint64_t tensor_size = size_of(request.tensor_dtype);
  const std::uint64_t bucket_size = size_of(request.bucket_dtype);
  const std::uint64_t bucket = address_of(request.bucket);
  std::vector<Range> ranges;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < request.tensors.size(); ++i) {
    const std::uint64_t at = address_of(request.tensors[i].data);
    const std::uint64_t count = request.tensors[i].count;
    if (count > 0 && !is_in_place(request, at, bucket + offset * bucket_size)) {
      ranges.push_back({at, at + count * tensor_size, i});
    }
    offset += count;
  }
  ranges.push_back({bucket, bucket + offset * bucket_size, request.tensors.size()});
  return ranges;
}

std::string overlap_of(const Range& left, const Range& right, std::size_t tensors) {
  if (left.begin >= right.end || right.begin >= left.end) return {};
  return name_of(left, tensors) + " and " + name_of(right, tensors) + " overlap in memory";
}

std::string overlap_in(const PackRequest& request) {
  std::vector<Range> ranges = ranges_of(request);
  const std::size_t tensors = request.tensors.size();
  std::string found;
  if (request.direction == Direction::kPack) {  // Tensors are only read.
    for (std::size_t i = 0; found.empty() && i + 1 < ranges.size(); ++i) {
      found = overlap_of(ranges[i], ranges.back(), tensors);
    }
    return found;
  }
  // If two overlap, the first overlaps the one behind it, too.
  std::ranges::sort(ranges, {}, &Range::begin);
  for (std::size_t i = 1; found.empty() && i < ranges.size(); ++i) {
    found = overlap_of(ranges[i - 1], ranges[i], tensors);
  }
  return found;
}

/// The memory ends where addresses do, at the latest.
bool fits(std::uint64_t address, std::uint64_t count, std::uint64_t size) {
  return count <= (std::numeric_limits<std::uint64_t>::max() - address) / size;
}

std::string impossible_range(const PackRequest& request) {
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < request.tensors.size(); ++i) {
    const auto& [data, count] = request.tensors[i];
    if (count == 0) continue;
    if (data == nullptr) return "tensor " + std::to_string(i) + " has elements, and no address";
    if (!fits(address_of(data), count, size_of(request.tensor_dtype)) ||
        !fits(elements, count, size_of(DType::kF64))) {
      return "tensor " + std::to_string(i) + " has more elements than there is memory";
    }
    elements += count;
  }
  if (elements > 0 && request.bucket == nullptr) return "the bucket has elements, and no address";
  if (!fits(address_of(request.bucket), elements, size_of(request.bucket_dtype))) {
    return "the bucket has more elements than there is memory";
  }
  return {};
}

/// Elements of a chunk: a multiple of kAccessBytes, and so of any access.
std::uint32_t chunk_elements_for(std::uint64_t elements, std::uint32_t element_bytes) {
  const std::uint64_t wanted = elements * element_bytes / kWantedChunks;
  const std::uint64_t bytes = std::clamp(wanted, kLeastChunkBytes, kMostChunkBytes);
  return static_cast<std::uint32_t>(bytes / element_bytes / kAccessBytes * kAccessBytes);
}

void add_rows(PackPlan& plan, const PackRequest& request) {
  const std::uint64_t units = plan.is_copy() ? size_of(plan.tensor_dtype) : 1;
  std::uint64_t offset = 0;
  for (const TensorRange& tensor : request.tensors) {
    if (tensor.count == 0) continue;
    plan.addresses.push_back(address_of(tensor.data));
    plan.offsets.push_back(offset);
    offset += tensor.count * units;
  }
  plan.offsets.push_back(offset);
}

std::uint64_t chunks_of_row(const PackPlan& plan, std::size_t row) {
  const std::uint64_t at = plan.addresses[row];
  const std::uint64_t in_bucket = plan.bucket + plan.offsets[row] * plan.bucket_element_bytes;
  if (plan.is_copy() && at == in_bucket) return 0;
  const Access access =
      access_between(at, plan.tensor_element_bytes, in_bucket, plan.bucket_element_bytes);
  return chunks_of(plan.offsets[row + 1] - plan.offsets[row], access.head, plan.chunk_elements);
}

void add_chunks(PackPlan& plan) {
  plan.chunk_elements = chunk_elements_for(
      plan.offsets.back(), std::max(plan.tensor_element_bytes, plan.bucket_element_bytes));
  std::uint64_t chunks = 0;
  plan.first_chunks.push_back(0);
  for (std::size_t row = 0; row < plan.rows(); ++row) {
    chunks += chunks_of_row(plan, row);
    if (chunks > kMostChunks) {
      throw std::length_error("a bucket of " + std::to_string(plan.bucket_bytes()) + " bytes in " +
                              std::to_string(plan.rows()) +
                              " tensors is more than one launch can take; make several");
    }
    plan.first_chunks.push_back(static_cast<std::uint32_t>(chunks));
  }
}

}  // namespace

std::string invalid_request(const PackRequest& request) {
  const auto& [direction, tensor, bucket, tensors, data, scale] = request;
  if (tensor != bucket && !is_cast(tensor, bucket)) {
    return "the bucket has the tensors' type, or f16 or bf16 where theirs is f32 or f64";
  }
  if (scale.divisor == 0) return "the divisor is 0";
  if (!std::isfinite(scale.factor)) return "the factor is not finite";
  if (scale.factor != 1 && !is_float(tensor)) {
    return "integers are divided, not multiplied; give a divisor";
  }
  std::string wrong = impossible_range(request);
  return wrong.empty() ? overlap_in(request) : wrong;
}

PackPlan pack_plan(const PackRequest& request) {
  PackPlan plan;
  plan.direction = request.direction;
  plan.tensor_dtype = request.tensor_dtype;
  plan.bucket_dtype = request.bucket_dtype;
  plan.scale = request.scale;
  plan.bucket = address_of(request.bucket);
  if (!plan.is_copy()) {
    plan.tensor_element_bytes = static_cast<std::uint32_t>(size_of(plan.tensor_dtype));
    plan.bucket_element_bytes = static_cast<std::uint32_t>(size_of(plan.bucket_dtype));
  }
  add_rows(plan, request);
  add_chunks(plan);
  return plan;
}

}  // namespace elastic::kernels::device
