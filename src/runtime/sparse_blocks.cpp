#include "runtime/sparse_blocks.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/kernels/reduce.hpp"

namespace elastic::runtime {

namespace {

/// A row that a member gave.
struct GivenRow {
  std::int64_t index;
  const std::byte* values;
};

void append(std::vector<std::byte>& block, const void* data, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(data);
  block.insert(block.end(), first, first + bytes);
}

/// Rows by index; those of one index in the order of their addresses. The blocks lie one after
/// another, so this is rank order, and the order of each member.
void sort_rows(std::vector<GivenRow>& rows) {
  std::ranges::sort(rows, [](const GivenRow& a, const GivenRow& b) {
    return a.index != b.index ? a.index < b.index : a.values < b.values;
  });
}

/// `rows` are sorted.
SparseRows add_rows(std::span<const GivenRow> rows, DType dtype, std::size_t width) {
  const std::size_t row_bytes = width * size_of(dtype);
  SparseRows sums;
  for (const GivenRow& row : rows) {
    if (sums.indices.empty() || sums.indices.back() != row.index) sums.indices.push_back(row.index);
  }
  sums.values.resize(sums.indices.size() * row_bytes);
  const kernels::Function reduce = kernels::reduce(dtype, ReduceOp::kSum);
  std::byte* sum = sums.values.data();
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (at > 0 && rows[at - 1].index == rows[at].index) {
      reduce(sum, sum, rows[at].values, width);
      continue;
    }
    if (at > 0) sum += row_bytes;
    std::memcpy(sum, rows[at].values, row_bytes);
  }
  return sums;
}

}  // namespace

std::size_t packed_bytes(std::span<const SparseOffer> offers) {
  std::size_t bytes = sizeof(std::uint64_t) + offers.size_bytes();
  for (const SparseOffer& offer : offers) bytes += offer.given_bytes();
  return bytes;
}

std::vector<std::byte> pack_rows(std::span<const SparseOffer> offers,
                                 std::span<const SparseRowsView> tensors) {
  std::vector<std::byte> block;
  block.reserve(packed_bytes(offers));
  const std::uint64_t count = offers.size();
  append(block, &count, sizeof(count));
  append(block, offers.data(), offers.size_bytes());
  for (const SparseRowsView& rows : tensors) {
    append(block, rows.indices.data(), rows.indices.size_bytes());
    append(block, rows.values.data, rows.values.bytes());
  }
  return block;
}

SparseBlocks::SparseBlocks(std::span<const std::byte> blocks, std::span<const std::size_t> sizes) {
  for (const std::size_t size : sizes) {
    const std::byte* at = blocks.data();
    blocks = blocks.subspan(size);
    std::uint64_t count = 0;
    std::memcpy(&count, at, sizeof(count));
    at += sizeof(count);
    SparseOffers& offers = offers_.emplace_back(static_cast<std::size_t>(count));
    std::memcpy(offers.data(), at, count * sizeof(SparseOffer));
    at += count * sizeof(SparseOffer);
    std::vector<GatheredRows>& rows = rows_.emplace_back();
    for (const SparseOffer& offer : offers) {
      const std::byte* const values = at + offer.count * sizeof(std::int64_t);
      rows.push_back({at, values});
      at += offer.given_bytes();
    }
  }
}

std::vector<SparseRows> SparseBlocks::sums() const {
  std::vector<SparseRows> sums;
  for (std::size_t tensor = 0; tensor < offers_.front().size(); ++tensor) {
    sums.push_back(sum(tensor));
  }
  return sums;
}

SparseRows SparseBlocks::sum(std::size_t tensor) const {
  const SparseOffer& first = offers_.front()[tensor];
  std::size_t count = 0;
  for (const SparseOffers& offers : offers_) count += offers[tensor].count;
  std::vector<GivenRow> rows;
  rows.reserve(count);
  for (std::size_t rank = 0; rank < offers_.size(); ++rank) {
    const GatheredRows& given = rows_[rank][tensor];
    for (std::size_t row = 0; row < offers_[rank][tensor].count; ++row) {
      std::int64_t index = 0;
      std::memcpy(&index, given.indices + row * sizeof(index), sizeof(index));
      rows.push_back({index, given.values + row * first.row_bytes()});
    }
  }
  sort_rows(rows);
  return add_rows(rows, static_cast<DType>(first.dtype), first.width);
}

}  // namespace elastic::runtime
