#include "elastic/sparse_allreduce.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "collectives/kernels/reduce.hpp"
#include "elastic/error.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {

namespace {

/// A member's block: the number of its rows, their indices, and the rows.
class Block {
 public:
  Block(std::span<const std::byte> bytes, std::size_t row_bytes)
      : bytes_(bytes), row_bytes_(row_bytes) {
    std::memcpy(&rows_, bytes.data(), sizeof(rows_));
  }

  std::size_t rows() const { return static_cast<std::size_t>(rows_); }
  std::int64_t index(std::size_t row) const {
    std::int64_t value = 0;
    std::memcpy(&value, bytes_.data() + sizeof(rows_) + row * sizeof(value), sizeof(value));
    return value;
  }
  const std::byte* values(std::size_t row) const {
    return bytes_.data() + sizeof(rows_) + rows() * sizeof(std::int64_t) + row * row_bytes_;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t row_bytes_;
  std::uint64_t rows_ = 0;
};

std::vector<std::byte> packed(const SparseRowsView& rows) {
  const std::uint64_t count = rows.indices.size();
  const auto indices = std::as_bytes(rows.indices);
  const auto* const values = static_cast<const std::byte*>(rows.values.data);
  std::vector<std::byte> block(sizeof(count));
  std::memcpy(block.data(), &count, sizeof(count));
  block.insert(block.end(), indices.begin(), indices.end());
  block.insert(block.end(), values, values + rows.values.bytes());
  return block;
}

void check(const SparseRowsView& rows, ReduceOp op) {
  runtime::check_host(rows.values, "sparse_allreduce");
  if (op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    throw Error(ErrorCode::kInvalidArgument, "sparse_allreduce: rows are summed or averaged only");
  }
  runtime::check(op, rows.values.dtype, "sparse_allreduce");
  if (rows.width > 0 && rows.values.count / rows.width == rows.indices.size() &&
      rows.values.count % rows.width == 0) {
    return;
  }
  throw Error(ErrorCode::kInvalidArgument,
              "sparse_allreduce: there are " + std::to_string(rows.indices.size()) +
                  " indices and " + std::to_string(rows.values.count) +
                  " values, which are not as many rows of " + std::to_string(rows.width));
}

/// The first index that is no row. All members find the same.
std::optional<std::string> find_fault(const std::vector<Block>& blocks, std::size_t rows) {
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    for (std::size_t at = 0; at < blocks[rank].rows(); ++at) {
      const std::int64_t index = blocks[rank].index(at);
      if (index >= 0 && static_cast<std::uint64_t>(index) < rows) continue;
      return "sparse_allreduce: index " + std::to_string(index) + " of rank " +
             std::to_string(rank) + ", at place " + std::to_string(at) +
             ", is no row; the tensor has " + std::to_string(rows) +
             ": this call is done, without a result on all members";
    }
  }
  return std::nullopt;
}

/// Adds the rows in rank order, and those of one rank in its order.
SparseRows add(const std::vector<Block>& blocks, DType dtype, std::size_t width) {
  const std::size_t row_bytes = width * size_of(dtype);
  std::map<std::int64_t, std::size_t> places;  // ascending
  for (const Block& block : blocks) {
    for (std::size_t row = 0; row < block.rows(); ++row) places.try_emplace(block.index(row), 0);
  }
  SparseRows sums;
  for (auto& [index, place] : places) {
    place = sums.indices.size();
    sums.indices.push_back(index);
  }
  sums.values.resize(sums.indices.size() * row_bytes);
  std::vector<bool> begun(sums.indices.size());
  const kernels::Function reduce = kernels::reduce(dtype, ReduceOp::kSum);
  for (const Block& block : blocks) {
    for (std::size_t row = 0; row < block.rows(); ++row) {
      const std::size_t place = places.at(block.index(row));
      std::byte* const sum = sums.values.data() + place * row_bytes;
      if (begun[place]) {
        reduce(sum, sum, block.values(row), width);
      } else if (row_bytes > 0) {
        std::memcpy(sum, block.values(row), row_bytes);
      }
      begun[place] = true;
    }
  }
  return sums;
}

}  // namespace

SparseRows sparse_allreduce(Context& context, const SparseRowsView& rows, ReduceOp op) {
  check(rows, op);
  const DType dtype = rows.values.dtype;
  const std::vector<std::byte> mine = packed(rows);
  const std::array<std::size_t, 3> shape = {rows.width, rows.rows,
                                            static_cast<std::size_t>(dtype) + 1};
  std::vector<std::byte> all;
  std::vector<std::size_t> counts;
  Contributors contributors = context.allgather(
      {mine.data(), mine.size(), DType::kU8, {}},
      [&](std::span<const std::byte> bytes, std::vector<std::size_t> of_ranks) {
        all.assign(bytes.begin(), bytes.end());
        counts = std::move(of_ranks);
      },
      {}, shape);
  std::vector<Block> blocks;
  std::span<const std::byte> rest(all);
  for (const std::size_t count : counts) {
    blocks.emplace_back(rest.first(count), rows.width * size_of(dtype));
    rest = rest.subspan(count);
  }
  if (const auto fault = find_fault(blocks, rows.rows)) {
    throw Error(ErrorCode::kInvalidArgument, *fault);
  }
  SparseRows sums = add(blocks, dtype, rows.width);
  if (op == ReduceOp::kAverage) {
    kernels::divide(dtype, sums.values.data(), sums.values.size() / size_of(dtype),
                    static_cast<std::uint32_t>(contributors.size()));
  }
  sums.contributors = std::move(contributors);
  return sums;
}

}  // namespace elastic
