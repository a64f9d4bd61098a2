#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "elastic/collectives.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"
#include "elastic/work.hpp"

namespace elastic {

/// Some rows of a tensor with `width` elements in each row, such as the gradient of an embedding.
/// Does not own them.
struct SparseRowsView {
  std::span<const std::int64_t> indices;  ///< of the rows; one may come several times
  ConstTensorView values;                 ///< the rows, one after another, in host memory
  std::size_t width = 1;                  ///< elements of a row
  std::size_t rows = 0;                   ///< of the whole tensor: each index is less
};

/// The sum of the rows that all members gave.
struct SparseRows {
  std::vector<std::int64_t> indices;  ///< ascending, each once
  std::vector<std::byte> values;      ///< the rows, in their order
  Contributors contributors;          ///< the workers with rows in it, and those that gave none
};

/// How the rows of all members are brought together. All members give the same.
enum class SparseForm : std::uint8_t {
  kChosen,    ///< the one that takes less time, by the number of rows that the members give
  kGathered,  ///< each member receives the rows of all, and adds them
  kDense      ///< an allreduce of the whole tensor, with zeros for rows that a member does not give
};

/// Sums sparse rows over all members of a Context or a Group, without the rows that no member gave.
/// Members may give different rows, and any number of them. Indices and values have the same
/// contributors after a death.
///
/// 1. The members exchange what they give: so calls that do not fit each other, and indices that
///    are no rows, are errors before any rows move.
/// 2. They gather the rows; or, if these are many, they allreduce the whole tensor, with a mark for
///    each row that a member gave. A member that dies before this exchange is left out of it.
///
/// With n members a gather moves n times the rows that one gives, and an allreduce twice the
/// tensor. docs/sparse-rows.md has the threshold, and the measurement that it comes from. An
/// allreduce takes the memory of one dense tensor with one column more. Elements of 8 bits are
/// gathered among more than 127 members, whatever `form` says.
///
/// The bits are the same on all ranks. Gathered rows with the same index are added in rank order,
/// and those of one member in its order. An allreduce has another order, so that sums of floats may
/// be rounded in another way, and adds 0.0 to them for a member that does not give the row, so that
/// -0.0 may become 0.0.
/// \returns the rows, the same on all members.
/// \throws Error as Context::allgather; also kMismatch, on all members, for another width, type,
///   number of rows, operation or form on one of them; kInvalidArgument, on all members, for an
///   index that is no row; the messages name the rank. kInvalidArgument on this member for values
///   that are not as many as indices and width say, and for other operations than kSum and
///   kAverage. If this worker alone cannot take part in the second exchange, as after kTimeout, it
///   leaves the job: the others are in it, so the call cannot be repeated.
ELASTIC_API SparseRows sparse_allreduce(Collectives& members, const SparseRowsView& rows,
                                        ReduceOp op = ReduceOp::kSum,
                                        SparseForm form = SparseForm::kChosen);

/// The same for several tensors, such as the embeddings of a model, in one operation: all of them
/// are sums over the same contributors. All are gathered, or all are dense.
/// \returns the rows of each tensor, in the order of `tensors`.
/// \throws Error as `sparse_allreduce`, kMismatch also for another number of tensors; the messages
///   name the tensor, counted from 0. kInvalidArgument, on this member, for no tensors.
ELASTIC_API std::vector<SparseRows> grouped_sparse_allreduce(
    Collectives& members, std::span<const SparseRowsView> tensors, ReduceOp op = ReduceOp::kSum,
    SparseForm form = SparseForm::kChosen);

/// A sparse_allreduce under way. A cheap handle; copies refer to the same operation. All functions
/// may be called from any thread. Destroying it does not cancel the operation.
class ELASTIC_API PendingSparseRows {
 public:
  /// No operation.
  PendingSparseRows() = default;
  /// For the library: `finish` makes the result once `work` is complete. It may throw.
  PendingSparseRows(Work work, std::function<SparseRows()> finish);

  /// Blocks until the operation is complete, and adds the rows of a named one, on this thread.
  /// \returns the rows; a copy, unless this handle is the last one and about to end.
  /// \throws Error of the operation if it failed, the same on every call, also on other members'
  ///   behalf, as sparse_allreduce; kInvalidArgument for no operation.
  /// \{
  SparseRows wait() const& { return result(false); }
  SparseRows wait() && { return result(true); }
  /// \}

  /// \returns whether the operation is complete, as Work::ready.
  bool ready() const noexcept { return work_.ready(); }
  /// \returns the operation, for its other functions and for `wait_all`. It may succeed, and `wait`
  ///   fail: members that gave rows that do not fit each other learn it from the rows.
  const Work& work() const noexcept { return work_; }

 private:
  struct Outcome;
  /// `is_ending`: no other function of this handle is called.
  SparseRows result(bool is_ending) const;

  Work work_;
  std::shared_ptr<Outcome> outcome_;
};

/// Starts a sparse_allreduce in program order, among the other calls without a name
/// (AsyncCollectives). `rows` are copied, and need not outlive the call.
/// \returns the operation under way, whose errors PendingSparseRows::wait throws.
/// \throws Error kInvalidArgument as sparse_allreduce on this member alone; kNotInitialized as
///   AsyncCollectives.
[[nodiscard]] ELASTIC_API PendingSparseRows
sparse_allreduce_async(Collectives& members, const SparseRowsView& rows,
                       ReduceOp op = ReduceOp::kSum, SparseForm form = SparseForm::kChosen);

/// The same under a name, with the duties of a named allgather: in any order, from any thread. It
/// is one exchange, and therefore always gathers the rows, however many they are.
/// \returns the operation under way, whose errors PendingSparseRows::wait throws.
/// \throws Error as above; also kInvalidArgument for a name that is empty or still under way here.
[[nodiscard]] ELASTIC_API PendingSparseRows sparse_allreduce_async(Collectives& members,
                                                                   std::string_view name,
                                                                   const SparseRowsView& rows,
                                                                   ReduceOp op = ReduceOp::kSum);

}  // namespace elastic
