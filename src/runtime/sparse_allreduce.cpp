#include "elastic/sparse_allreduce.hpp"

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/gathered_calls.hpp"
#include "base/mutex.hpp"
#include "collectives/kernels/reduce.hpp"
#include "elastic/error.hpp"
#include "runtime/dense_rows.hpp"
#include "runtime/raise.hpp"
#include "runtime/scope_of.hpp"
#include "runtime/sparse_blocks.hpp"
#include "runtime/sparse_form.hpp"
#include "runtime/sparse_offer.hpp"

namespace elastic {

namespace {

using runtime::SparseBlocks;
using runtime::SparseOffer;
using runtime::SparseOffers;

/// Adds what the sums of one call lack: the contributors, and for an average the division.
void conclude(std::vector<SparseRows>& sums, const SparseOffers& offers,
              const Contributors& contributors) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].contributors = contributors;
    if (static_cast<ReduceOp>(offers[i].op) != ReduceOp::kAverage) continue;
    kernels::divide(static_cast<DType>(offers[i].dtype), sums[i].values.data(),
                    sums[i].values.size() / offers[i].element_bytes(),
                    static_cast<std::uint32_t>(contributors.size()));
  }
}

/// The first exchange: what each member gives, by rank.
std::vector<SparseOffers> exchange_offers(Collectives& members, const SparseOffers& mine) {
  std::vector<SparseOffers> by_rank;
  members.allgather(
      {mine.data(), mine.size() * sizeof(SparseOffer), DType::kU8, {}},
      [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& sizes) {
        for (const std::size_t size : sizes) {
          SparseOffers& offers = by_rank.emplace_back(size / sizeof(SparseOffer));
          std::memcpy(offers.data(), bytes.data(), size);
          bytes = bytes.subspan(size);
        }
      },
      {}, kSparseCall.row);
  return by_rank;
}

std::vector<SparseRows> sum_gathered(Collectives& members, const SparseOffers& mine,
                                     std::span<const SparseRowsView> tensors,
                                     std::span<const SparseOffers> by_rank) {
  const std::vector<std::byte> block = runtime::pack_rows(mine, tensors);
  std::size_t room = 0;
  for (const SparseOffers& offers : by_rank) room += runtime::packed_bytes(offers);
  const auto all = std::make_unique_for_overwrite<std::byte[]>(room);
  const GatheredBlocks blocks =
      members.allgather({block.data(), block.size(), DType::kU8, {}},
                        TensorView{all.get(), room, DType::kU8, {}}, {}, kSparseRowsCall.row);
  std::vector<SparseRows> sums = SparseBlocks({all.get(), blocks.count}, blocks.counts).sums();
  conclude(sums, mine, blocks.contributors);
  return sums;
}

std::vector<SparseRows> sum_dense(Collectives& members, const SparseOffers& mine,
                                  std::span<const SparseRowsView> tensors) {
  std::vector<runtime::DenseRows> dense(tensors.begin(), tensors.end());
  std::vector<TensorView> views;
  for (runtime::DenseRows& each : dense) views.push_back(each.view());
  const Contributors contributors =
      views.size() == 1 ? members.allreduce(views.front()) : members.grouped_allreduce(views);
  std::vector<SparseRows> sums;
  for (const runtime::DenseRows& each : dense) sums.push_back(each.marked());
  conclude(sums, mine, contributors);
  return sums;
}

/// Whether all members of the call have this error, or this worker has left the job, so that it
/// cannot begin the call again alone.
bool is_final(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMismatch:
    case ErrorCode::kNotInitialized:
    case ErrorCode::kBelowMinimum:
    case ErrorCode::kEvicted:
    case ErrorCode::kRemoved:
    case ErrorCode::kStopped:
    case ErrorCode::kInternal:
      return true;
    default:
      return false;
  }
}

/// Leaves the job because of the exception that is being handled. If this fails too, such as for
/// lack of memory, the process ends, and the others notice its death.
void leave_for_exception(Collectives& members) noexcept {
  std::string what = "an exception";
  try {
    throw;
  } catch (const std::bad_alloc&) {
    what = "lack of memory";
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    // An exception of another type has no text.
  }
  (void)runtime::ScopeOf::get(members)->leave_without_result(
      Status(Code::kInternal, "sparse_allreduce ended here with " + what));
}

/// Makes the second exchange. The others are in it or come to it: if this worker ends it in an
/// error of its own, it leaves the job, because it would begin the first exchange again.
template <typename Exchange>
void exchange_or_leave(Collectives& members, const Exchange& exchange) {
  try {
    exchange();
  } catch (const Error& error) {
    if (is_final(error.code())) throw;
    const Code code = error.code() == ErrorCode::kTimeout ? Code::kTimeout : Code::kInternal;
    runtime::raise(runtime::ScopeOf::get(members)->leave_without_result(
        Status(code, runtime::text_of(error), error.peer(), error.generation())));
  } catch (...) {
    leave_for_exception(members);
    throw;
  }
}

/// All forms but the named one.
std::vector<SparseRows> sum_rows(Collectives& members, std::span<const SparseRowsView> tensors,
                                 ReduceOp op, SparseForm form) {
  const SparseOffers mine = runtime::offers_of(tensors, op, form);
  const std::vector<SparseOffers> by_rank = exchange_offers(members, mine);
  Status wrong;
  std::vector<SparseRows> sums;
  exchange_or_leave(members, [&] {
    wrong = runtime::check_offers(by_rank);
    if (!wrong.ok()) return;
    sums = runtime::goes_dense(by_rank) ? sum_dense(members, mine, tensors)
                                        : sum_gathered(members, mine, tensors, by_rank);
  });
  if (!wrong.ok())
    runtime::raise(runtime::found_at(runtime::ScopeOf::get(members)->where(), wrong));
  return sums;
}

/// The rows of one tensor, for a call that goes on after its caller.
class OwnedRows {
 public:
  explicit OwnedRows(const SparseRowsView& rows)
      : indices_(rows.indices.begin(), rows.indices.end()), view_(rows) {
    const auto* const first = static_cast<const std::byte*>(rows.values.data);
    values_.assign(first, first + rows.values.bytes());
  }
  SparseRowsView view() const {
    SparseRowsView view = view_;
    view.indices = indices_;
    view.values.data = values_.data();
    return view;
  }

 private:
  std::vector<std::int64_t> indices_;
  std::vector<std::byte> values_;
  SparseRowsView view_;  // without the memory that it names
};

/// The rows of a named call: those of this member until it is complete, then those of all.
struct NamedRows {
  std::vector<std::byte> block;
  std::vector<std::byte> all;
  std::vector<std::size_t> sizes;
  std::string where;  ///< see CallScope
};

SparseRows sum_named(NamedRows& rows, const Contributors& contributors) {
  const SparseBlocks blocks(rows.all, rows.sizes);
  runtime::raise_if(runtime::found_at(rows.where, runtime::check_offers(blocks.offers())));
  std::vector<SparseRows> sums = blocks.sums();
  conclude(sums, blocks.offers().front(), contributors);
  rows = {};
  return std::move(sums.front());
}

}  // namespace

struct PendingSparseRows::Outcome {
  explicit Outcome(std::function<SparseRows()> make) : finish(std::move(make)) {}

  Mutex mutex;
  const std::function<SparseRows()> finish;
  std::optional<SparseRows> rows ELASTIC_GUARDED_BY(mutex);
};

PendingSparseRows::PendingSparseRows(Work work, std::function<SparseRows()> finish)
    : work_(std::move(work)), outcome_(std::make_shared<Outcome>(std::move(finish))) {}

SparseRows PendingSparseRows::result(bool is_ending) const {
  (void)work_.wait();
  const MutexLock lock(outcome_->mutex);
  if (!outcome_->rows) outcome_->rows = outcome_->finish();
  if (is_ending && outcome_.use_count() == 1) return std::move(*outcome_->rows);
  return *outcome_->rows;
}

SparseRows sparse_allreduce(Collectives& members, const SparseRowsView& rows, ReduceOp op,
                            SparseForm form) {
  runtime::check_rows({&rows, 1}, op, form, "sparse_allreduce");
  return std::move(sum_rows(members, {&rows, 1}, op, form).front());
}

std::vector<SparseRows> grouped_sparse_allreduce(Collectives& members,
                                                 std::span<const SparseRowsView> tensors,
                                                 ReduceOp op, SparseForm form) {
  runtime::check_rows(tensors, op, form, "grouped_sparse_allreduce");
  return sum_rows(members, tensors, op, form);
}

PendingSparseRows sparse_allreduce_async(Collectives& members, const SparseRowsView& rows,
                                         ReduceOp op, SparseForm form) {
  constexpr const char* kCall = "sparse_allreduce_async";
  runtime::check_rows({&rows, 1}, op, form, kCall);
  const auto sums = std::make_shared<SparseRows>();
  Work work = runtime::ScopeOf::get(members)->queue(
      kCall, [&members, owned = OwnedRows(rows), op, form, sums] {
        const SparseRowsView view = owned.view();
        *sums = std::move(sum_rows(members, {&view, 1}, op, form).front());
        return sums->contributors;
      });
  return {std::move(work), [sums] { return std::move(*sums); }};
}

PendingSparseRows sparse_allreduce_async(Collectives& members, std::string_view name,
                                         const SparseRowsView& rows, ReduceOp op) {
  constexpr const char* kCall = "sparse_allreduce_async";
  runtime::check_rows({&rows, 1}, op, SparseForm::kGathered, kCall);
  if (name.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(kCall) + ": a named call needs a name that is not empty");
  }
  const auto named = std::make_shared<NamedRows>();
  named->where = runtime::ScopeOf::get(members)->where();
  const SparseOffers offers = runtime::offers_of({&rows, 1}, op, SparseForm::kGathered);
  named->block = runtime::pack_rows(offers, {&rows, 1});
  Work work = members.allgather_async(
      name, {named->block.data(), named->block.size(), DType::kU8, {}},
      [named](std::span<const std::byte> all, std::vector<std::size_t> sizes) {
        named->all.assign(all.begin(), all.end());
        named->sizes = std::move(sizes);
      },
      kSparseRowsCall.row);
  return {work, [named, work] { return sum_named(*named, work.contributors()); }};
}

}  // namespace elastic
