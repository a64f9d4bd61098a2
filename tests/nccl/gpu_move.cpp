#include "nccl/gpu_move.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "collectives/backend/own_result.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/parts.hpp"
#include "nccl/contents.hpp"

namespace elastic::collectives::nccl {

namespace {

/// The content of an output without any result.
std::vector<std::byte> nothing(std::size_t bytes) {
  return std::vector<std::byte>(bytes, std::byte{0x5a});
}

}  // namespace

GpuMove::GpuMove(const testing::Gpu& gpu, int rank, Move move)
    : gpu_(gpu),
      rank_(rank),
      move_(std::move(move)),
      element_(size_of(move_.dtype)),
      input_(gpu, nothing(given().size() + 2 * element_)),
      output_(gpu, nothing(result().size() + element_)) {
  place_tensor();
  const std::vector<std::byte> content = given();
  gpu_.copy(tensor_.input, address(content.data()), content.size());
  output_before_ = read(tensor_.output, result().size() + element_);
}

void GpuMove::place_tensor() {
  const auto at = static_cast<std::size_t>(rank_);
  tensor_ = {move_.dtype, move_.counts[at], input_.address(), output_.address(), 0};
  tensor_.room = result().size();
  if (move_.kind == Kind::kReduceScatter) {  // A call needs room for the largest part.
    tensor_.room = std::ranges::max(result_counts()) * element_;
  }
  if (move_.kind == Kind::kBroadcast) tensor_.output = tensor_.input;
  if (move_.place == Place::kTooSmall) tensor_.room -= element_;
  if (move_.place != Place::kInPlace && move_.place != Place::kOverlaps) return;
  // `result_counts` has the blocks of an allgather or the parts of a reduce_scatter.
  const std::vector<std::uint64_t> counts = result_counts();
  const auto before = std::accumulate(counts.begin(), counts.begin() + rank_, std::uint64_t{0});
  const std::uint64_t shift = move_.place == Place::kOverlaps ? element_ : 0;
  if (move_.kind == Kind::kAllgather) tensor_.input = tensor_.output + before * element_ + shift;
  if (move_.kind == Kind::kReduceScatter) {
    tensor_.output = tensor_.input + before * element_ + shift;
  }
}

Call GpuMove::call() const {
  switch (move_.kind) {
    case Kind::kAllgather:
      return allgather_call(move_.dtype, tensor_.count);
    case Kind::kReduceScatter:
      return reduce_scatter_call(move_.dtype, tensor_.count, move_.op);
    default:
      return broadcast_call(move_.dtype, tensor_.count, move_.root);
  }
}

void GpuMove::give(Payload& payload, int device) {
  device_ = device;
  payload.clear();
  payload.form = OnDevice{this};
}

std::vector<std::byte> GpuMove::read(std::uint64_t from, std::size_t bytes) const {
  std::vector<std::byte> content(bytes);
  gpu_.copy(address(content.data()), from, bytes);
  return content;
}

Status GpuMove::to_host(Payload& payload) {
  ++times_on_host_;
  payload.data.resize(tensor_.bytes());
  if (move_.kind == Kind::kBroadcast && !is_root()) return {};
  gpu_.copy(address(payload.data.data()), tensor_.input, tensor_.bytes());
  return {};
}

Status GpuMove::take(Payload& payload) {
  if (is_root()) return {};
  if (const auto result = payload.device_result()) return unpack(gpu_, *result);
  const std::size_t bytes = result().size();
  std::byte* from = payload.data.data();
  if (move_.kind == Kind::kReduceScatter) {
    from += own_part(payload, rank_, size_of(move_.dtype)).data.data() - from;
  }
  if (move_.op == ReduceOp::kAverage) {
    kernels::divide(move_.dtype, from, bytes / size_of(move_.dtype),
                    static_cast<std::uint32_t>(size()));
  }
  gpu_.copy(tensor_.output, address(from), bytes);
  return {};
}

std::vector<std::uint64_t> GpuMove::result_counts() const {
  if (move_.kind == Kind::kBroadcast) return {};
  if (move_.kind == Kind::kAllgather) return {move_.counts.begin(), move_.counts.end()};
  return plan::parts_of(move_.counts.front(), move_.counts.size());
}

std::vector<std::byte> GpuMove::given() const {
  const std::size_t count = move_.counts[static_cast<std::size_t>(rank_)];
  return bytes_of(move_.dtype, contribution(rank_, count, move_.dtype));
}

std::vector<std::byte> GpuMove::result() const {
  const auto of = [&](int rank) {
    const std::size_t count = move_.counts[static_cast<std::size_t>(rank)];
    return bytes_of(move_.dtype, contribution(rank, count, move_.dtype));
  };
  if (move_.kind == Kind::kBroadcast) return of(move_.root);
  std::vector<std::byte> all;
  if (move_.kind == Kind::kAllgather) {
    for (int rank = 0; rank < size(); ++rank) {
      const std::vector<std::byte> block = of(rank);
      all.insert(all.end(), block.begin(), block.end());
    }
    return all;
  }
  const bool average = move_.op == ReduceOp::kAverage;
  const std::size_t count = move_.counts.front();
  all = bytes_of(move_.dtype,
                 combined(size(), count, move_.dtype, average ? ReduceOp::kSum : move_.op));
  if (average) {
    kernels::divide(move_.dtype, all.data(), count, static_cast<std::uint32_t>(size()));
  }
  const auto begin = [&](int rank) {
    return all.begin() +
           static_cast<std::ptrdiff_t>(
               plan::part_begin(count, move_.counts.size(), static_cast<std::size_t>(rank)) *
               size_of(move_.dtype));
  };
  return {begin(rank_), begin(rank_ + 1)};
}

void GpuMove::expect_right(const Payload& payload) const {
  SCOPED_TRACE("rank " + std::to_string(rank_) + ", type " +
               std::to_string(static_cast<int>(move_.dtype)));
  EXPECT_TRUE(std::ranges::equal(payload.counts(), result_counts()));
  const std::vector<std::byte> right = result();
  EXPECT_TRUE(read(tensor_.output, right.size()) == right) << "a wrong result";
  const std::uint64_t end = tensor_.output + right.size();
  EXPECT_TRUE(std::ranges::equal(read(end, element_), std::span(output_before_).last(element_)))
      << "something behind the output";
  if (move_.kind == Kind::kBroadcast || end <= tensor_.input ||
      tensor_.input + tensor_.bytes() <= tensor_.output) {
    expect_intact_input();
  }
}

void GpuMove::expect_untouched() const {
  expect_intact_input();
  EXPECT_FALSE(has_written_output()) << "a changed output on rank " << rank_;
}

void GpuMove::expect_intact_input() const {
  if (move_.kind == Kind::kBroadcast && !is_root()) return;
  EXPECT_TRUE(read(tensor_.input, tensor_.bytes()) == given())
      << "a changed input on rank " << rank_;
}

bool GpuMove::has_written_output() const {
  return read(tensor_.output, output_before_.size()) != output_before_;
}

}  // namespace elastic::collectives::nccl
