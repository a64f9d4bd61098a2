#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "elastic/context.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/detail/ranges.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// The gradients of a training step as one unit. They are named allreduces, submitted as they
/// become ready and fused as usual, but committed together: if a member dies within the step, the
/// results of all tensors are over the same contributors.
///
///     elastic::StepGroup step(elastic::context());
///     ...
///     step.allreduce("conv1", conv1_gradient);  // in the backward pass, in any order
///     step.allreduce("conv2", conv2_gradient);
///     const elastic::Contributors contributors = step.wait();
///
/// Without it some buckets may be complete with the dead member's part when it dies, and the others
/// are completed without it. Here `wait` sums the former again, from inputs that were kept. All
/// ranks decide alike which they are, because the contributors of a call are the same on all; an
/// undisturbed step needs no further message.
///
/// An input is kept as a copy if its allreduce is in place: so much memory, which is used again in
/// the next step, and a pass over the gradients. Out of place the input itself is kept, and must
/// stay as it is until `wait`.
///
/// One object serves step after step. Tensors are in host memory. One thread at a time may use it;
/// names are shared with those of Context's named calls.
class ELASTIC_API StepGroup {
 public:
  /// `context` must outlive it.
  explicit StepGroup(Context& context);
  /// Does not wait: tensors under way must live until they are complete, as those of a Work.
  ~StepGroup();
  StepGroup(const StepGroup&) = delete;
  StepGroup& operator=(const StepGroup&) = delete;

  /// Adds a tensor to the step, and starts its allreduce: in place in `data`, or from `in` to
  /// `out`.
  /// \throws Error as Context::allreduce_async; also kInvalidArgument for a tensor on a device, and
  ///   for a name that is in this step already.
  /// \{
  void allreduce(std::string_view name, ConstTensorView in, TensorView out,
                 ReduceOp op = ReduceOp::kSum);
  void allreduce(std::string_view name, TensorView data, ReduceOp op = ReduceOp::kSum) {
    allreduce(name, data, data, op);
  }
  template <Element T>
  void allreduce(std::string_view name, std::span<T> data, ReduceOp op = ReduceOp::kSum) {
    allreduce(name, view(data), op);
  }
  template <detail::ContiguousRange R>
  void allreduce(std::string_view name, R&& data, ReduceOp op = ReduceOp::kSum) {
    allreduce(name, view(detail::output_of(std::forward<R>(data))), op);
  }
  /// \}

  /// Ends the step: waits until all its tensors have results over the same contributors.
  /// \returns these contributors; none of a step without tensors.
  /// \throws Error of the first tensor that failed, which the message names: kMismatch on all ranks.
  ///   The tensors in place are as they were before the step then, those out of place undefined,
  ///   and the next step begins. kTimeout on this rank alone: if some tensors have results, this
  ///   worker leaves the job, because the step cannot be repeated; otherwise it can.
  Contributors wait();

  /// \returns the tensors of this step that were not waited for.
  std::size_t open() const;
  /// \returns the bytes of the inputs that are kept as copies: as many as the largest step had.
  std::size_t kept_bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic
