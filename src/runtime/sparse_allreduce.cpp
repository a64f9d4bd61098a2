#include "elastic/sparse_allreduce.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/dtype_names.hpp"
#include "base/gathered_calls.hpp"
#include "base/reduce_ops.hpp"
#include "collectives/kernels/reduce.hpp"
#include "elastic/error.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {

namespace {

/// The call of a member, at the begin of its block. All members compare those of all, so that an
/// error names the ranks.
struct SparseShape {
  std::uint64_t width;
  std::uint64_t rows;  ///< of the whole tensor
  std::uint32_t dtype;
  std::uint32_t op;
  bool operator==(const SparseShape&) const = default;
};

struct SparseHeader {
  SparseShape shape;
  std::uint64_t count;  ///< of the rows that follow
};
static_assert(sizeof(SparseHeader) == 32);

std::string described(const SparseShape& shape) {
  return "sparse_allreduce on a tensor of " + std::to_string(shape.rows) + " rows of " +
         std::to_string(shape.width) + " " + dtype_name(static_cast<DType>(shape.dtype)) + ", " +
         reduce_op_name(static_cast<ReduceOp>(shape.op));
}

/// A member's block: the header, the indices of its rows, and the rows.
class Block {
 public:
  explicit Block(std::span<const std::byte> bytes) : bytes_(bytes) {
    std::memcpy(&header_, bytes.data(), sizeof(header_));
    row_bytes_ = header_.shape.width * size_of(static_cast<DType>(header_.shape.dtype));
  }

  const SparseShape& shape() const { return header_.shape; }
  std::size_t rows() const { return static_cast<std::size_t>(header_.count); }
  std::int64_t index(std::size_t row) const {
    std::int64_t value = 0;
    std::memcpy(&value, bytes_.data() + sizeof(header_) + row * sizeof(value), sizeof(value));
    return value;
  }
  const std::byte* values(std::size_t row) const {
    return bytes_.data() + sizeof(header_) + rows() * sizeof(std::int64_t) + row * row_bytes_;
  }

 private:
  std::span<const std::byte> bytes_;
  SparseHeader header_;
  std::size_t row_bytes_;
};

std::vector<std::byte> packed(const SparseShape& shape, const SparseRowsView& rows) {
  const SparseHeader header{shape, rows.indices.size()};
  const auto indices = std::as_bytes(rows.indices);
  const auto* const values = static_cast<const std::byte*>(rows.values.data);
  std::vector<std::byte> block(sizeof(header));
  std::memcpy(block.data(), &header, sizeof(header));
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

/// The first rank with another call than rank 0. All members find the same.
std::optional<std::string> find_difference(const std::vector<Block>& blocks) {
  const SparseShape& first = blocks.front().shape();
  for (std::size_t rank = 1; rank < blocks.size(); ++rank) {
    if (blocks[rank].shape() == first) continue;
    return "rank 0 called " + described(first) + ", rank " + std::to_string(rank) + " called " +
           described(blocks[rank].shape()) +
           ": give rows of one tensor on all members, and one operation";
  }
  return std::nullopt;
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

/// A row that a member gave.
struct GivenRow {
  std::int64_t index;
  const std::byte* values;
};

/// The rows of all members by index, and those of one index in rank order, and in the order of the
/// member. The blocks lie one after another in rank order, so this is the order of addresses.
std::vector<GivenRow> in_order(const std::vector<Block>& blocks) {
  std::vector<GivenRow> rows;
  std::size_t count = 0;
  for (const Block& block : blocks) count += block.rows();
  rows.reserve(count);
  for (const Block& block : blocks) {
    for (std::size_t row = 0; row < block.rows(); ++row) {
      rows.push_back({block.index(row), block.values(row)});
    }
  }
  std::ranges::sort(rows, [](const GivenRow& a, const GivenRow& b) {
    return a.index != b.index ? a.index < b.index : a.values < b.values;
  });
  return rows;
}

/// Adds the rows in rank order, and those of one rank in its order.
SparseRows add(const std::vector<Block>& blocks, DType dtype, std::size_t width) {
  const std::size_t row_bytes = width * size_of(dtype);
  const std::vector<GivenRow> rows = in_order(blocks);
  SparseRows sums;
  for (const GivenRow& row : rows) {
    if (sums.indices.empty() || sums.indices.back() != row.index) sums.indices.push_back(row.index);
  }
  sums.values.resize(sums.indices.size() * row_bytes);
  const kernels::Function reduce = kernels::reduce(dtype, ReduceOp::kSum);
  std::byte* sum = sums.values.data();
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (at == 0 || rows[at - 1].index != rows[at].index) {
      if (at > 0) sum += row_bytes;
      std::memcpy(sum, rows[at].values, row_bytes);
    } else {
      reduce(sum, sum, rows[at].values, width);
    }
  }
  return sums;
}

}  // namespace

SparseRows sparse_allreduce(Collectives& members, const SparseRowsView& rows, ReduceOp op) {
  check(rows, op);
  const DType dtype = rows.values.dtype;
  const std::vector<std::byte> mine = packed(
      {rows.width, rows.rows, static_cast<std::uint32_t>(dtype), static_cast<std::uint32_t>(op)},
      rows);
  std::vector<std::byte> all;
  std::vector<std::size_t> counts;
  Contributors contributors = members.allgather(
      {mine.data(), mine.size(), DType::kU8, {}},
      [&](std::span<const std::byte> bytes, std::vector<std::size_t> of_ranks) {
        all.assign(bytes.begin(), bytes.end());
        counts = std::move(of_ranks);
      },
      {}, kSparseCall.row);
  std::vector<Block> blocks;
  std::span<const std::byte> rest(all);
  for (const std::size_t count : counts) {
    blocks.emplace_back(rest.first(count));
    rest = rest.subspan(count);
  }
  if (const auto difference = find_difference(blocks)) {
    throw Error(ErrorCode::kMismatch, *difference);
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
