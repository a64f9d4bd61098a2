#include "fault/programs/sparse_calls.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fault/programs/digits.hpp"

namespace elastic::fault {

namespace {

constexpr std::size_t kRowWidth = 4;
constexpr std::size_t kMostSlots = 18;  // as many as `digit` has

struct SlotRows {
  std::vector<std::int64_t> indices;
  std::vector<std::int64_t> values;

  SlotRows(std::size_t elements, int slot) : indices(elements / kRowWidth + 1) {
    std::iota(indices.begin(), indices.end(), std::int64_t{0});
    indices.push_back(static_cast<std::int64_t>(indices.size()) + slot);
    values.assign(indices.size() * kRowWidth, digit(slot));
  }
  SparseRowsView view() const {
    return {indices, elastic::view(std::span(values)), kRowWidth, indices.size() - 1 + kMostSlots};
  }
};

/// The sum in the rows of all. The rows of the slots have to add up to it.
SparseOutcome sum_of_rows(const SparseRows& sums, int slot) {
  std::vector<std::int64_t> values(sums.values.size() / sizeof(std::int64_t));
  std::memcpy(values.data(), sums.values.data(), sums.values.size());
  const auto rows_are = [&](std::size_t first, std::size_t count, std::int64_t value) {
    for (std::size_t i = first * kRowWidth; i < (first + count) * kRowWidth; ++i) {
      if (values.at(i) != value) throw std::logic_error("mixed values in the rows of one call");
    }
  };
  const std::int64_t sum = values.at(0);
  const std::size_t common = sums.indices.size() - sums.contributors.size();
  rows_are(0, common, sum);
  std::int64_t of_slots = 0;
  for (std::size_t row = common; row < sums.indices.size(); ++row) {
    const auto owner = static_cast<int>(sums.indices[row] - static_cast<std::int64_t>(common));
    rows_are(row, 1, digit(owner));
    of_slots += digit(owner);
  }
  if (of_slots != sum) throw std::logic_error("rows of other workers than the sum");
  check_digits(sum, sums.contributors.size(), slot);
  return {std::to_string(sum), sums.contributors};
}

}  // namespace

SparseOutcome sum_sparse_rows(std::size_t elements, int slot, SparseForm form) {
  const SlotRows rows(elements, slot);
  return sum_of_rows(sparse_allreduce(elastic::context(), rows.view(), ReduceOp::kSum, form), slot);
}

SparseOutcome sum_pending_sparse_rows(std::size_t elements, int slot) {
  Context& context = elastic::context();
  const SlotRows rows(elements, slot);
  const SparseRowsView both[] = {rows.view(), rows.view()};
  std::array<PendingSparseRows, 3> pending{
      sparse_allreduce_async(context, rows.view(), ReduceOp::kSum, SparseForm::kDense),
      sparse_allreduce_async(context, rows.view()),
      sparse_allreduce_async(context, "rows", rows.view())};
  const std::vector<SparseRows> grouped = grouped_sparse_allreduce(context, both);
  if (!pending[0].ready() || !pending[1].ready()) {
    throw std::logic_error("a blocking call came before");
  }
  SparseOutcome outcome = sum_of_rows(grouped.front(), slot);
  if (sum_of_rows(grouped.back(), slot).sums != outcome.sums) {
    throw std::logic_error("a group with two sets of contributors");
  }
  for (PendingSparseRows& each : pending) {
    outcome.sums += "," + sum_of_rows(std::move(each).wait(), slot).sums;
  }
  return outcome;
}

}  // namespace elastic::fault
