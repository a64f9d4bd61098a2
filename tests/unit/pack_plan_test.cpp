#include "collectives/kernels/device/pack_plan.hpp"

#include <algorithm>
#include <rapidcheck.h>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "collectives/kernels/device/pack_chunk.hpp"
#include "tests/pack_types.hpp"

namespace elastic::kernels::device {
namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

constexpr std::uint64_t kBucket = std::uint64_t{1} << 40;
constexpr std::uint64_t kOutOfPlace = std::uint64_t{1}
                                      << 32;  // tensors, without those in their places

/// A request whose memory is nowhere: plans look at addresses alone.
struct Drawn {
  std::vector<TensorRange> tensors;
  PackRequest request;
};

std::size_t draw_count() {
  return *rc::gen::weightedOneOf<std::size_t>({{1, rc::gen::just(std::size_t{0})},
                                               {4, rc::gen::inRange<std::size_t>(1, 40)},
                                               {3, rc::gen::inRange<std::size_t>(1, 5000)},
                                               {2, rc::gen::inRange<std::size_t>(1, 3'000'000)}});
}

/// Mostly at multiples of the element's size, since all that is fast is for these.
std::uint64_t draw_misalignment(std::size_t size) {
  const auto bytes = *rc::gen::inRange<std::uint64_t>(0, 32);
  return *rc::gen::weightedElement<bool>({{1, true}, {4, false}}) ? bytes : bytes / size * size;
}

Drawn draw() {
  Drawn drawn;
  const auto types = *rc::gen::elementOf(gpu::kPackTypes);
  PackRequest& request = drawn.request;
  request.direction = *rc::gen::element(Direction::kPack, Direction::kUnpack);
  request.tensor_dtype = types.tensor;
  request.bucket_dtype = types.bucket;
  request.scale.divisor = *rc::gen::element(1U, 3U);
  const std::size_t tensor_size = size_of(types.tensor);
  const std::size_t bucket_size = size_of(types.bucket);
  std::uint64_t in_bucket = kBucket + draw_misalignment(bucket_size);
  request.bucket = pointer(in_bucket);
  const auto tensors = *rc::gen::inRange<std::size_t>(0, 30);
  for (std::size_t i = 0; i < tensors; ++i) {
    const std::size_t count = draw_count();
    const bool in_place = types.tensor == types.bucket && *rc::gen::inRange(0, 10) == 0;
    const std::uint64_t out_of_place =
        kBucket + (i + 1) * kOutOfPlace + draw_misalignment(tensor_size);
    drawn.tensors.push_back({pointer(in_place ? in_bucket : out_of_place), count});
    in_bucket += count * bucket_size;
  }
  request.tensors = drawn.tensors;
  return drawn;
}

struct Piece {
  std::uint64_t address;  ///< of the tensor's elements
  std::uint64_t in_bucket;
  std::uint64_t count;
};

bool begins_access(std::uint64_t address, std::uint32_t lanes, std::uint32_t element_bytes) {
  return address % (std::uint64_t{lanes} * element_bytes) == 0;
}

/// Checks the device's accesses for a chunk, and returns the elements that they cover.
Piece check_chunk(const PackPlan& plan, std::size_t row, std::uint32_t chunk) {
  const std::uint32_t tensor_size = plan.tensor_element_bytes;
  const std::uint32_t bucket_size = plan.bucket_element_bytes;
  const std::uint64_t count = plan.offsets[row + 1] - plan.offsets[row];
  const std::uint64_t at = plan.addresses[row];
  const std::uint64_t in_bucket = plan.bucket + plan.offsets[row] * bucket_size;
  const Access access = access_between(at, tensor_size, in_bucket, bucket_size);
  const Chunk mine =
      chunk_at(chunk - plan.first_chunks[row], count, access.head, plan.chunk_elements);
  RC_ASSERT(mine.begin < mine.end);
  RC_ASSERT(mine.end <= count);
  RC_ASSERT(mine.end - mine.begin < plan.chunk_elements + kAccessBytes);
  const ChunkParts parts = parts_of(mine, access);
  RC_ASSERT(parts.head + parts.accesses * access.lanes + parts.tail == mine.end - mine.begin);
  const std::uint64_t first = mine.begin + parts.head;
  if (access.lanes == 0) {
    RC_ASSERT(parts.head + parts.accesses == 0U);
  } else {
    RC_ASSERT(access.lanes * std::max(tensor_size, bucket_size) <= kAccessBytes);
    RC_ASSERT(at % tensor_size == 0U);
    RC_ASSERT(in_bucket % bucket_size == 0U);
  }
  if (parts.accesses > 0) {
    RC_ASSERT(begins_access(at + first * tensor_size, access.lanes, tensor_size));
    RC_ASSERT(begins_access(in_bucket + first * bucket_size, access.lanes, bucket_size));
    RC_ASSERT(parts.head == 0U || mine.begin == 0U);
    RC_ASSERT(parts.head + parts.tail < 2 * access.lanes);
  }
  return {at + mine.begin * tensor_size, in_bucket + mine.begin * bucket_size,
          mine.end - mine.begin};
}

/// The row of a chunk, as a block finds it.
std::size_t row_of(const PackPlan& plan, std::uint32_t chunk) {
  const auto& first = plan.first_chunks;
  const auto behind = std::upper_bound(first.begin(), first.end() - 1, chunk);
  return static_cast<std::size_t>(behind - first.begin()) - 1;
}

RC_GTEST_PROP(PackPlanProperty, MovesEveryElementOnceInAlignedAccesses, ()) {
  const Drawn drawn = draw();
  const PackRequest& request = drawn.request;
  RC_ASSERT(invalid_request(request).empty());
  const PackPlan plan = pack_plan(request);
  const std::uint64_t tensor_size = size_of(request.tensor_dtype);
  const std::uint64_t bucket_size = size_of(request.bucket_dtype);
  std::uint32_t chunk = 0;
  auto in_bucket = reinterpret_cast<std::uintptr_t>(request.bucket);
  for (const TensorRange& tensor : request.tensors) {
    std::uint64_t at = reinterpret_cast<std::uintptr_t>(tensor.data);
    const std::uint64_t end = at + tensor.count * tensor_size;
    std::uint64_t place = in_bucket;
    in_bucket += tensor.count * bucket_size;
    if (plan.is_copy() && at == place) continue;  // nothing to be done
    while (at < end) {                            // in order, so every element is in one piece
      RC_ASSERT(chunk < plan.chunks());
      const Piece piece = check_chunk(plan, row_of(plan, chunk), chunk);
      RC_ASSERT(piece.address == at);
      RC_ASSERT(piece.in_bucket == place);
      at += piece.count * plan.tensor_element_bytes;
      place += piece.count * plan.bucket_element_bytes;
      ++chunk;
    }
    RC_ASSERT(at == end);
    RC_ASSERT(place == in_bucket);
  }
  RC_ASSERT(chunk == plan.chunks());
  RC_ASSERT(plan.bucket_bytes() == in_bucket - reinterpret_cast<std::uintptr_t>(request.bucket));
}

RC_GTEST_PROP(PackPlanProperty, AccessesAreAsWideAsAlignmentAllows, ()) {
  const auto types = *rc::gen::elementOf(gpu::kPackTypes);
  const auto from_size = static_cast<std::uint32_t>(size_of(types.tensor));
  const auto to_size = static_cast<std::uint32_t>(size_of(types.bucket));
  const std::uint64_t from = kBucket + *rc::gen::inRange(0U, 64U);
  const std::uint64_t to = kOutOfPlace + *rc::gen::inRange(0U, 64U);
  const Access access = access_between(from, from_size, to, to_size);
  RC_ASSERT(access.head < std::max(access.lanes, 1U));
  std::uint32_t widest = 0;
  for (std::uint32_t lanes = 1; lanes * std::max(from_size, to_size) <= kAccessBytes; lanes *= 2) {
    for (std::uint32_t head = 0; head < lanes; ++head) {
      if (begins_access(from + head * from_size, lanes, from_size) &&
          begins_access(to + head * to_size, lanes, to_size)) {
        widest = lanes;
      }
    }
  }
  RC_ASSERT(access.lanes == widest);
}

PackRequest request_of(const std::vector<TensorRange>& tensors, DType dtype) {
  PackRequest request;
  request.tensor_dtype = request.bucket_dtype = dtype;
  request.tensors = tensors;
  request.bucket = pointer(kBucket);
  return request;
}

TEST(PackPlan, LargeTensorsAreManyChunksAndSmallOnesAreOneEach) {
  std::vector<TensorRange> tensors = {{pointer(kOutOfPlace), std::size_t{100} << 20}};
  for (std::uint64_t i = 2; i < 302; ++i) tensors.push_back({pointer(i * kBucket), 64});
  const PackPlan plan = pack_plan(request_of(tensors, DType::kF32));
  EXPECT_EQ(plan.chunks(), (400U << 20) / (32U << 10) + 300);
  EXPECT_EQ(plan.rows(), 301U);
}

TEST(PackPlan, SmallBucketsKeepAllMultiprocessorsBusy) {
  const std::vector<TensorRange> tensors = {{pointer(kOutOfPlace), std::size_t{1} << 18}};
  EXPECT_EQ(pack_plan(request_of(tensors, DType::kF32)).chunks(), 256U);
}

TEST(PackPlan, NothingToDoIsNoChunks) {
  EXPECT_EQ(pack_plan(request_of({}, DType::kF32)).chunks(), 0U);
  EXPECT_EQ(pack_plan(request_of({{nullptr, 0}}, DType::kF32)).chunks(), 0U);
  EXPECT_EQ(pack_plan(request_of({{pointer(kBucket), 9}}, DType::kF32)).chunks(), 0U);
}

TEST(PackPlan, TensorsInTheirPlacesAreScaledAllTheSame) {
  const std::vector<TensorRange> tensors = {{pointer(kBucket), 9}};
  PackRequest request = request_of(tensors, DType::kF32);
  request.scale.divisor = 3;
  EXPECT_EQ(invalid_request(request), "");
  EXPECT_EQ(pack_plan(request).chunks(), 1U);
}

TEST(PackPlan, MoreThanOneLaunchCanTakeIsRefused) {
  const std::vector<TensorRange> tensors = {{pointer(kOutOfPlace), std::size_t{1} << 46}};
  PackRequest request = request_of(tensors, DType::kU8);
  request.bucket = pointer(std::uint64_t{1} << 62);
  EXPECT_EQ(invalid_request(request), "");
  EXPECT_THROW(pack_plan(request), std::length_error);
}

TEST(InvalidRequest, OverlapsAreNamed) {
  std::vector<TensorRange> tensors = {{pointer(kOutOfPlace), 100}, {pointer(kBucket + 404), 100}};
  PackRequest request = request_of(tensors, DType::kF32);
  EXPECT_EQ(invalid_request(request), "tensor 1 and the bucket overlap in memory");
  tensors[1].data = pointer(kBucket + 400);  // its place
  EXPECT_EQ(invalid_request(request), "");
  tensors[0].data = pointer(kBucket);
  EXPECT_EQ(invalid_request(request), "");
  request.bucket_dtype = DType::kF16;  // where elements are of another size
  EXPECT_EQ(invalid_request(request), "tensor 0 and the bucket overlap in memory");
}

TEST(InvalidRequest, TensorsMayOverlapWhereTheyAreOnlyRead) {
  const std::vector<TensorRange> tensors = {{pointer(kOutOfPlace), 100},
                                            {pointer(kOutOfPlace), 50}};
  PackRequest request = request_of(tensors, DType::kF32);
  EXPECT_EQ(invalid_request(request), "");
  request.direction = Direction::kUnpack;
  EXPECT_EQ(invalid_request(request), "tensor 0 and tensor 1 overlap in memory");
}

TEST(InvalidRequest, TypesAndScales) {
  PackRequest request = request_of({}, DType::kF32);
  request.bucket_dtype = DType::kF64;
  EXPECT_NE(invalid_request(request), "");
  request = request_of({}, DType::kI32);
  request.scale.factor = 0.5;
  EXPECT_EQ(invalid_request(request), "integers are divided, not multiplied; give a divisor");
  request.scale = {1, 0};
  EXPECT_EQ(invalid_request(request), "the divisor is 0");
}

TEST(InvalidRequest, MemoryThatCannotBe) {
  const std::vector<TensorRange> nowhere = {{pointer(kOutOfPlace), 1}, {nullptr, 1}};
  EXPECT_EQ(invalid_request(request_of(nowhere, DType::kF32)),
            "tensor 1 has elements, and no address");
  const std::vector<TensorRange> endless = {{pointer(kOutOfPlace), ~std::size_t{0} / 4}};
  EXPECT_EQ(invalid_request(request_of(endless, DType::kF32)),
            "tensor 0 has more elements than there is memory");
}

}  // namespace
}  // namespace elastic::kernels::device
