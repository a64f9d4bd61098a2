#include "runtime/sparse_offer.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "base/dtype_names.hpp"
#include "base/reduce_ops.hpp"
#include "elastic/error.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic::runtime {

namespace {

/// Whether both are offers for the same tensor and the same operation.
bool same_call(const SparseOffer& a, const SparseOffer& b) {
  return a.width == b.width && a.rows == b.rows && a.dtype == b.dtype && a.op == b.op &&
         a.form == b.form;
}

std::string tensors(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " tensor" : " tensors");
}

/// The call of a member, with what it is in tensor `at`.
std::string described(const SparseOffers& offers, std::size_t at) {
  static constexpr const char* kForms[] = {"", ", gathered", ", dense"};
  const SparseOffer& offer = offers[at];
  const std::string shape = std::to_string(offer.rows) + " rows of " + std::to_string(offer.width) +
                            " " + dtype_name(static_cast<DType>(offer.dtype)) + ", " +
                            reduce_op_name(static_cast<ReduceOp>(offer.op)) +
                            kForms[offer.form % 3];
  if (offers.size() == 1) return "sparse_allreduce on a tensor of " + shape;
  return "sparse_allreduce on " + tensors(offers.size()) + ", of which number " +
         std::to_string(at) + " has " + shape;
}

std::string difference(std::size_t rank, const std::string& first, const std::string& other) {
  return "rank 0 called " + first + ", rank " + std::to_string(rank) + " called " + other +
         ": give rows of the same tensors on all members, and one operation";
}

std::optional<std::string> find_difference(std::span<const SparseOffers> by_rank) {
  const SparseOffers& first = by_rank.front();
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    const SparseOffers& other = by_rank[rank];
    if (other.size() != first.size()) {
      return difference(rank, "sparse_allreduce on " + tensors(first.size()),
                        "sparse_allreduce on " + tensors(other.size()));
    }
    for (std::size_t at = 0; at < first.size(); ++at) {
      if (same_call(first[at], other[at])) continue;
      return difference(rank, described(first, at), described(other, at));
    }
  }
  return std::nullopt;
}

std::optional<std::string> find_fault(std::span<const SparseOffers> by_rank) {
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (std::size_t at = 0; at < by_rank[rank].size(); ++at) {
      const SparseOffer& offer = by_rank[rank][at];
      if (offer.fault_at == SparseOffer::kNoFault) continue;
      const std::string which =
          by_rank[rank].size() == 1 ? "the tensor" : "tensor " + std::to_string(at);
      return "sparse_allreduce: index " + std::to_string(offer.fault) + " of rank " +
             std::to_string(rank) + ", at place " + std::to_string(offer.fault_at) +
             ", is no row; " + which + " has " + std::to_string(offer.rows) +
             ": this call is done, and no member has a result";
    }
  }
  return std::nullopt;
}

std::optional<std::string> find_impossible(const SparseOffers& offers) {
  for (const SparseOffer& offer : offers) {
    const bool is_dense = static_cast<SparseForm>(offer.form) == SparseForm::kDense;
    if (!is_dense || offer.dense_bytes() < SparseOffer::kMostDenseBytes) continue;
    return "sparse_allreduce: a dense tensor of " + std::to_string(offer.rows) + " rows of " +
           std::to_string(offer.width) +
           " elements has more bytes than memory can have; ask for SparseForm::kChosen";
  }
  return std::nullopt;
}

}  // namespace

void check_rows(std::span<const SparseRowsView> tensors, ReduceOp op, SparseForm form,
                const char* call) {
  const auto refuse = [](const std::string& where, const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, where + ": " + why);
  };
  if (tensors.empty()) refuse(call, "give the rows of one tensor at least");
  if (op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    refuse(call, "rows are summed or averaged only");
  }
  if (form > SparseForm::kDense) {
    refuse(call, "there is no form " + std::to_string(static_cast<int>(form)));
  }
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    const SparseRowsView& rows = tensors[at];
    std::string where = call;
    if (tensors.size() > 1) where += ", tensor " + std::to_string(at);
    check_host(rows.values, where.c_str());
    check_indices(rows.indices, where);
    check(op, rows.values.dtype, where.c_str());
    if (rows.width > 0 && rows.values.count % rows.width == 0 &&
        rows.values.count / rows.width == rows.indices.size()) {
      continue;
    }
    refuse(where, "there are " + std::to_string(rows.indices.size()) + " indices and " +
                      std::to_string(rows.values.count) +
                      " values, which are not as many rows of " + std::to_string(rows.width));
  }
}

SparseOffers offers_of(std::span<const SparseRowsView> tensors, ReduceOp op, SparseForm form) {
  SparseOffers offers;
  for (const SparseRowsView& rows : tensors) {
    SparseOffer offer;
    offer.width = rows.width;
    offer.rows = rows.rows;
    offer.count = rows.indices.size();
    offer.dtype = static_cast<std::uint32_t>(rows.values.dtype);
    offer.op = static_cast<std::uint8_t>(op);
    offer.form = static_cast<std::uint8_t>(form);
    const auto wrong = std::ranges::find_if(rows.indices, [&](std::int64_t index) {
      return index < 0 || static_cast<std::uint64_t>(index) >= rows.rows;
    });
    if (wrong != rows.indices.end()) {
      offer.fault_at = static_cast<std::uint64_t>(wrong - rows.indices.begin());
      offer.fault = *wrong;
    }
    offers.push_back(offer);
  }
  return offers;
}

Status check_offers(std::span<const SparseOffers> by_rank) {
  if (const auto difference = find_difference(by_rank)) {
    return Status(Code::kMismatch, *difference);
  }
  if (const auto fault = find_fault(by_rank)) return Status(Code::kInvalidArgument, *fault);
  if (const auto impossible = find_impossible(by_rank.front())) {
    return Status(Code::kInvalidArgument, *impossible);
  }
  return {};
}

}  // namespace elastic::runtime
