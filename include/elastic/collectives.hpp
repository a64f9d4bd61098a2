#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "elastic/async_collectives.hpp"
#include "elastic/compression.hpp"
#include "elastic/detail/export.hpp"
#include "elastic/detail/ranges.hpp"
#include "elastic/error.hpp"
#include "elastic/grouped_results.hpp"
#include "elastic/results.hpp"
#include "elastic/root.hpp"
#include "elastic/scale.hpp"
#include "elastic/types.hpp"

namespace elastic {

/// The collectives of all members of a job (Context), or of some of them (Group, whose members are
/// the members below, with ranks of their own).
///
/// **Collectives.** Every member must make the same calls in the same order ("program order");
/// named asynchronous calls are exempt and may come in any order. When a member dies, the same
/// call returns the right result on all survivors: it was computed from exactly the contributions
/// of the members before the death or exactly those of the survivors, and `Contributors` tells
/// which. Results are bit-identical on all ranks. While a call in place runs its tensor is
/// undefined; when it fails the tensor is as it was, and a separate output is undefined.
///
/// **Errors of every collective:**
/// - kMismatch: ranks made different calls. All of them get it from that call, and the job goes on.
/// - kInvalidArgument: an unsupported device or a bad size, or a call from a function that the
///   library itself has called (State's `save` and `load`, GlobalBatch::AddGradients,
///   TakeGathered).
/// - kNotInitialized: this worker is joining, and collectives are for members (see `run`); or the
///   process is a forked child of the worker.
/// - kTimeout: no new view in time (Options::view_timeout), or a stall (Options::stall_timeout).
/// - kEvicted, kRemoved, kStopped, kBelowMinimum: see ErrorCode. They end the training.
/// - kInternal: a defect of the library, or an earlier call ended as the next paragraph says.
///
/// If a call ends in any other exception (no memory, or what a function threw that the caller
/// gave), this worker leaves the job, because the others may have the result; they go on without
/// it. Every further call throws kInternal.
///
/// **Tensors on CUDA devices.** Collectives take them, whatever the backend, with the stream that
/// makes them: see CudaStream for what is waited for. They go through pinned memory of the host,
/// but where NCCL performs the call, and everything above holds for them; some ranks may have
/// theirs on a device and others in host memory. All tensors of one call that lie on a device lie
/// on the same device; others of a group may be in host memory, and so may the input or the output
/// of an allgather and a reduce_scatter. Besides the errors above:
/// - kInvalidArgument: a tensor does not lie where the call says, or the stream cannot be waited
///   for or comes without a tensor on a device.
/// - kUnavailable: CUDA is missing or fails. If it fails when the others have the result already,
///   this worker leaves the job, the tensor is undefined, and every further call throws the same.
///
/// A wait for a device has no end of its own: one that lasts longer than Options::stall_warning is
/// reported in the log. If a call names a device's memory as host memory, this is noticed if the
/// program used CUDA before it made the context, or has given a tensor on a device since; otherwise
/// it ends like any bad pointer.
class ELASTIC_API Collectives : public AsyncCollectives {
 public:
  /// Combines the tensors of all members element by element, and gives the result to all of them:
  /// from `in` to `out`, or in place in `data`. Ranges are vectors, arrays and spans.
  ///
  /// `in` and `out` have the same count and dtype, and are the same memory or do not overlap.
  /// `stream` is for tensors on a CUDA device.
  /// \returns the workers that contributed to the result.
  /// \throws Error as every collective; also kInvalidArgument for `in` and `out` that do not fit
  ///   each other, and for an op that the dtype does not have (kAverage of bools, say).
  /// \{
  Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                         CudaStream stream = {});
  Contributors allreduce(TensorView data, ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
    return allreduce(data, data, op, stream);
  }
  template <Element T>
  Contributors allreduce(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
    return allreduce(view(data), op);
  }
  template <Element T>
  Contributors allreduce(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::kSum) {
    return allreduce(view(in), view(out), op);
  }
  template <detail::ContiguousRange R>
  Contributors allreduce(R&& data, ReduceOp op = ReduceOp::kSum) {
    return allreduce(view(detail::output_of(std::forward<R>(data))), op);
  }
  template <detail::ContiguousRange In, detail::ContiguousRange Out>
  Contributors allreduce(const In& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    return allreduce(view(detail::input_of(in)), view(detail::output_of(std::forward<Out>(out))),
                     op);
  }
  /// \}

  /// `allreduce` with factors for the tensors and for the result.
  /// \returns the workers that contributed to the result.
  /// \throws Error as `allreduce`; also kInvalidArgument for factors of whole numbers and factors
  ///   that are not finite, and kMismatch if members give other factors.
  /// \{
  Contributors allreduce(ConstTensorView in, TensorView out, ReduceOp op, Scale scale,
                         CudaStream stream = {});
  Contributors allreduce(TensorView data, ReduceOp op, Scale scale, CudaStream stream = {}) {
    return allreduce(data, data, op, scale, stream);
  }
  template <detail::ContiguousRange R>
  Contributors allreduce(R&& data, ReduceOp op, Scale scale) {
    return allreduce(view(detail::output_of(std::forward<R>(data))), op, scale);
  }
  /// \}

  /// Combines one number of each member, and leaves `value` as it is.
  /// \returns the result.
  /// \throws Error as every collective.
  template <detail::Number T>
  [[nodiscard]] T allreduce(T value, ReduceOp op = ReduceOp::kSum) {
    detail::require_element<T>();
    allreduce(view(std::span<T>(&value, 1)), op);
    return value;
  }

  /// Allreduces several tensors, of any dtypes, in place, as one unit: after a failure either all
  /// of them hold the sums over the same contributors or none was changed.
  /// \returns the workers that contributed to the results.
  /// \throws Error as every collective; also kInvalidArgument for tensors that overlap, naming
  ///   both.
  Contributors grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op = ReduceOp::kSum,
                                 CudaStream stream = {});

  /// `grouped_allreduce` with factors for the tensors and for the results.
  /// \returns the workers that contributed to the results.
  /// \throws Error as `grouped_allreduce`, and as `allreduce` with factors.
  Contributors grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op, Scale scale,
                                 CudaStream stream = {});

  /// `grouped_allreduce` for sums and averages of tensors that travel as f16 or bf16, in host
  /// memory or on a device. Under the backend nccl the device itself casts the tensors. If it
  /// cannot, because that library was built without CUDA's compiler, they go through host memory on
  /// all members.
  /// \returns the workers that contributed to the results.
  /// \throws Error as `grouped_allreduce`; also kMismatch if members cast different tensors or cast
  ///   them differently, and kInvalidArgument for other dtypes, scales and ops.
  Contributors cast_allreduce(std::span<const CastTensor> tensors, ReduceOp op = ReduceOp::kSum,
                              CudaStream stream = {});

  /// Starts an allreduce in place under a name. Named operations may be submitted in any order and
  /// from any thread; tensors that are ready together are fused into buckets
  /// (Options::bucket_bytes). Every member must submit the name once before it is submitted again
  /// anywhere. The tensor must live until the operation is complete.
  ///
  /// Each bucket has contributors of its own. When a worker dies within a step, the buckets that
  /// are complete have its part, and the others have not. So divide each sum by its own number of
  /// contributors or samples, and give all of them to `Sampler::commit`.
  ///
  /// A tensor on a CUDA device is copied to the host when its stream has come to it, or under the
  /// backend "nccl" can be read there, and only then does it count as submitted; named tensors that
  /// this worker submits after it wait for it.
  /// \returns the operation under way, whose errors Work::wait throws.
  /// \throws Error kInvalidArgument: a name that is empty or still under way here, or a tensor that
  ///   a collective refuses. kNotInitialized: this worker is joining. Codes that end the training.
  /// \{
  using AsyncCollectives::allreduce_async;  // without a name
  [[nodiscard]] Work allreduce_async(std::string_view name, TensorView data,
                                     ReduceOp op = ReduceOp::kSum, CudaStream stream = {});
  template <Element T>
  [[nodiscard]] Work allreduce_async(std::string_view name, std::span<T> data,
                                     ReduceOp op = ReduceOp::kSum) {
    return allreduce_async(name, view(data), op);
  }
  template <detail::ContiguousRange R>
  [[nodiscard]] Work allreduce_async(std::string_view name, R&& data,
                                     ReduceOp op = ReduceOp::kSum) {
    return allreduce_async(name, view(detail::output_of(std::forward<R>(data))), op);
  }
  /// \}

  /// `allreduce_async` with factors for the tensor and for the result.
  /// \returns the operation under way, whose errors Work::wait throws.
  /// \throws Error as `allreduce_async`, and as `allreduce` with factors.
  /// \{
  [[nodiscard]] Work allreduce_async(std::string_view name, TensorView data, ReduceOp op,
                                     Scale scale, CudaStream stream = {});
  template <detail::ContiguousRange R>
  [[nodiscard]] Work allreduce_async(std::string_view name, R&& data, ReduceOp op, Scale scale) {
    return allreduce_async(name, view(detail::output_of(std::forward<R>(data))), op, scale);
  }
  /// \}

  /// Starts a `grouped_allreduce` under a name, with the duties of an `allreduce_async`. The group
  /// stays one unit.
  /// \returns the operation under way, whose errors Work::wait throws.
  /// \throws Error as `allreduce_async`; also kInvalidArgument for tensors that overlap.
  /// \{
  using AsyncCollectives::grouped_allreduce_async;  // without a name
  [[nodiscard]] Work grouped_allreduce_async(std::string_view name,
                                             std::span<const TensorView> tensors,
                                             ReduceOp op = ReduceOp::kSum, CudaStream stream = {});
  /// \}

  /// `grouped_allreduce_async` with factors for the tensors and for the results.
  /// \returns the operation under way, whose errors Work::wait throws.
  /// \throws Error as `grouped_allreduce_async`, and as `allreduce` with factors.
  [[nodiscard]] Work grouped_allreduce_async(std::string_view name,
                                             std::span<const TensorView> tensors, ReduceOp op,
                                             Scale scale, CudaStream stream = {});

  /// Copies `data` of rank `root` of the present view to all members. If that worker is gone before
  /// the call begins, the root is the worker that has the rank then. `stream` is for tensors on a
  /// CUDA device.
  /// \returns the members that have the data.
  /// \throws Error as every collective; also kRootLost, on every member, if the root dies before the
  ///   members can complete the call: it may be repeated, and no tensor has changed.
  /// \{
  Contributors broadcast(TensorView data, int root, CudaStream stream = {});
  template <Element T>
  Contributors broadcast(std::span<T> data, int root) {
    return broadcast(view(data), root);
  }
  template <detail::ContiguousRange R>
  Contributors broadcast(R&& data, int root) {
    return broadcast(view(detail::output_of(std::forward<R>(data))), root);
  }
  /// \}

  /// `broadcast` from a worker, which is the same one whatever becomes of the ranks: for roots that
  /// were chosen earlier, and for several broadcasts from one root. All members name the same.
  /// \returns the members that have the data.
  /// \throws Error as `broadcast`; kRootLost, on every member, also if `root` is no member.
  /// \{
  Contributors broadcast_from(TensorView data, WorkerId root, CudaStream stream = {});
  template <Element T>
  Contributors broadcast_from(std::span<T> data, WorkerId root) {
    return broadcast_from(view(data), root);
  }
  template <detail::ContiguousRange R>
  Contributors broadcast_from(R&& data, WorkerId root) {
    return broadcast_from(view(detail::output_of(std::forward<R>(data))), root);
  }
  /// \}

  /// Gathers the blocks of all members, which may differ in count, on all of them.
  /// \returns the blocks in rank order.
  /// \throws Error as every collective.
  /// \{
  template <Element T>
  Gathered<T> allgather(std::span<const T> block) {
    Gathered<T> result;
    result.contributors = allgather(view(block), take_into(result));
    return result;
  }

  template <detail::ContiguousRange R>
  Gathered<detail::ElementOf<R>> allgather(const R& block) {
    return allgather(detail::input_of(block));
  }
  /// \}

  /// Gathers the blocks of all members into `out`, of the same dtype. The blocks are at its
  /// beginning; the rest stays as it is. If a member dies within the call, the room that its
  /// block would have taken is undefined. `block` and `out` may lie on one CUDA device, either or
  /// both, which `stream` is for, and `block` may be a part of `out`. For an `out` on a device the
  /// call takes as much pinned memory as `out` is large, if it goes through host memory.
  /// \returns how many elements each contributor gave, and the contributors.
  /// \throws Error as every collective; also kInvalidArgument if the blocks have no room in `out`.
  ///   The message says how many elements there are, which depends on the members of the view that
  ///   completes the call. The call is done then, on the other members too, an `out` on a device is
  ///   as it was unless the members have changed within the call, and the job goes on. Members with
  ///   the same room in `out` all get this error, and can call again with more.
  /// `row`: the shape of the block without its first axis; members with other rows get kMismatch.
  GatheredBlocks allgather(ConstTensorView block, TensorView out, CudaStream stream = {},
                           std::span<const std::size_t> row = {});

  /// Combines `data` of all members as an allreduce does; each member gets one part of the result.
  /// The parts are of nearly equal sizes. Which part it is depends on rank and size in the view
  /// that completed the call.
  /// \returns this member's part.
  /// \throws Error as every collective.
  /// \{
  template <Element T>
  Scattered<T> reduce_scatter(std::span<const T> data, ReduceOp op = ReduceOp::kSum) {
    Scattered<T> result;
    result.contributors = reduce_scatter(view(data), op, take_into(result));
    return result;
  }

  template <detail::ContiguousRange R>
  Scattered<detail::ElementOf<R>> reduce_scatter(const R& data, ReduceOp op = ReduceOp::kSum) {
    return reduce_scatter(detail::input_of(data), op);
  }
  /// \}

  /// The same into `out`, of the same dtype. The part is at its beginning; the rest stays as it is.
  /// If a member dies within the call, more of it may be undefined.
  /// `data` and `out` may lie on one CUDA device, either or both, which `stream` is for, and they
  /// may overlap. `out` needs room for the largest part, which is data.count divided by the size of
  /// the view that completes the call, rounded up: with room for data.count divided by the fewest
  /// members that the job may have, no call fails.
  /// \returns count and offset of this member's part, and the contributors.
  /// \throws Error as every collective; also kInvalidArgument, as from an allgather, if the part
  ///   has no room in `out`.
  ScatteredPart reduce_scatter(ConstTensorView data, TensorView out, ReduceOp op = ReduceOp::kSum,
                               CudaStream stream = {});

  /// Reduce_scatters several tensors, all of one dtype, as one unit: after a failure either all
  /// outputs hold parts of sums over the same contributors or none does. Tensor i goes from
  /// `inputs[i]` to `outputs[i]` as in a `reduce_scatter` into a tensor: each is cut into parts of
  /// its own, and each output needs room for the largest part of its tensor. An input may overlap
  /// outputs; outputs do not overlap each other. Costs one call, and a copy of the tensors.
  /// `stream` is for tensors on a CUDA device.
  /// \returns count and offset of this member's part of each tensor, and the contributors.
  /// \throws Error as `reduce_scatter` into a tensor, naming the index of the tensor; if one part
  ///   has no room, all outputs of this member are as they were. Also kInvalidArgument if there are
  ///   not as many outputs as inputs, or their dtypes differ; kMismatch, on all members, if they
  ///   give other numbers of tensors, or other shapes.
  /// \{
  ScatteredTensors grouped_reduce_scatter(std::span<const ConstTensorView> inputs,
                                          std::span<const TensorView> outputs,
                                          ReduceOp op = ReduceOp::kSum, CudaStream stream = {});
  ScatteredTensors grouped_reduce_scatter(std::span<const TensorView> inputs,
                                          std::span<const TensorView> outputs,
                                          ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
    return grouped_reduce_scatter(std::vector<ConstTensorView>(inputs.begin(), inputs.end()),
                                  outputs, op, stream);
  }
  /// \}

  /// Gathers the blocks of several tensors, of any dtypes, as one unit: after a failure either all
  /// outputs hold the blocks of the same contributors or none does. Block i goes from `blocks[i]`
  /// to `outputs[i]` of all members as in an `allgather` into a tensor: members may give blocks of
  /// different counts. A block may overlap outputs; outputs do not overlap each other. Costs one
  /// call, and a copy of the blocks. `stream` is for tensors on a CUDA device.
  /// \returns how many elements each contributor gave to each tensor, and the contributors.
  /// \throws Error as `allgather` into a tensor, naming the index of the tensor; if the blocks of
  ///   one tensor have no room, all outputs of this member are as they were. Also kInvalidArgument
  ///   if there are not as many outputs as blocks; kMismatch, on all members, if they give other
  ///   numbers of tensors, or other dtypes.
  /// \{
  GatheredTensors grouped_allgather(std::span<const ConstTensorView> blocks,
                                    std::span<const TensorView> outputs, CudaStream stream = {});
  GatheredTensors grouped_allgather(std::span<const TensorView> blocks,
                                    std::span<const TensorView> outputs, CudaStream stream = {}) {
    return grouped_allgather(std::vector<ConstTensorView>(blocks.begin(), blocks.end()), outputs,
                             stream);
  }
  /// \}

  /// Gives each member a block, and gets one from each, in rank order. With `counts` the blocks may
  /// differ in size, and all members give counts; without, all blocks have the same size, the same
  /// on all members. Block i is for the member that had rank i when this program last asked for
  /// rank, size, generation or members; `to` names the workers instead (BlocksView).
  ///
  /// If a member dies, the call returns on the survivors: the blocks that they gave each other
  /// without those of the dead, or, if all survivors had those already, with them. Contributors
  /// and counts say which.
  /// \returns the blocks, and the elements that each contributor gave.
  /// \throws Error as every collective; also kMismatch, on all members, where the blocks of one do
  ///   not fit its tensor or the number of workers, or a member has no block because it joined
  ///   after this program last asked: ask again and repeat the call.
  /// \{
  template <Element T>
  Gathered<T> alltoall(std::span<const T> data, std::span<const std::size_t> counts = {},
                       const Contributors& to = {}) {
    Gathered<T> result;
    result.contributors = alltoall({view(data), counts, to}, take_into(result));
    return result;
  }
  template <detail::ContiguousRange R>
  Gathered<detail::ElementOf<R>> alltoall(const R& data, std::span<const std::size_t> counts = {},
                                          const Contributors& to = {}) {
    return alltoall(detail::input_of(data), counts, to);
  }
  /// \}

  /// The same into `out`, of the same dtype, with the rules of an allgather into a tensor.
  /// \returns how many elements each contributor gave, and the contributors.
  /// \throws Error as `alltoall`; also kInvalidArgument, as from an allgather, if the blocks have
  ///   no room in `out`.
  GatheredBlocks alltoall(const BlocksView& blocks, TensorView out, CudaStream stream = {});

  /// Gives the root the blocks of all members, which may differ in count.
  /// \returns on the root the blocks in rank order; on others only the contributors.
  /// \throws Error as every collective; also kRootLost, on every member, if the root dies before it
  ///   has all blocks, or the worker named is no member; kMismatch, on every member, for a rank
  ///   that is not there.
  /// \{
  template <Element T>
  Gathered<T> gather(std::span<const T> block, Root root) {
    Gathered<T> result;
    result.contributors = gather(view(block), root, take_into(result));
    return result;
  }
  template <detail::ContiguousRange R>
  Gathered<detail::ElementOf<R>> gather(const R& block, Root root) {
    return gather(detail::input_of(block), root);
  }
  /// \}

  /// The same into `out` of the root, of the same dtype, with the rules of an allgather into a
  /// tensor; other members' `out` is not used.
  /// \returns on the root how many elements each contributor gave; on others the contributors.
  /// \throws Error as `gather`; also kInvalidArgument, on the root alone, if the blocks have no room
  ///   in `out`.
  GatheredBlocks gather(ConstTensorView block, TensorView out, Root root, CudaStream stream = {},
                        std::span<const std::size_t> row = {});

  /// The root gives each member a block of its tensor: `data`, `counts` and `to` of the root are as
  /// for an alltoall, and of other members only the type of `data` counts.
  /// \returns this member's block.
  /// \throws Error as every collective; also kRootLost, on every member, if the root dies before all
  ///   survivors have their blocks, or the worker named is no member; kMismatch, on every member,
  ///   for a rank that is not there, or blocks that do not fit, as from an alltoall.
  /// \{
  template <Element T>
  Scattered<T> scatter(std::span<const T> data, Root root, std::span<const std::size_t> counts = {},
                       const Contributors& to = {}) {
    Scattered<T> result;
    result.contributors = scatter({view(data), counts, to}, root, take_into(result));
    return result;
  }
  template <detail::ContiguousRange R>
  Scattered<detail::ElementOf<R>> scatter(const R& data, Root root,
                                          std::span<const std::size_t> counts = {},
                                          const Contributors& to = {}) {
    return scatter(detail::input_of(data), root, counts, to);
  }
  /// \}

  /// The same into `out`, of the same dtype, with the rules of a reduce_scatter into a tensor.
  /// \returns count and offset of this member's block, and the contributors.
  /// \throws Error as `scatter`; also kInvalidArgument, on this member alone, if its block has no
  ///   room in `out`.
  ScatteredPart scatter(const BlocksView& blocks, TensorView out, Root root,
                        CudaStream stream = {});

  /// Combines the tensors of all members as an allreduce does; the root alone gets the result.
  /// Other members' `out` is not used, and may be empty; in place their tensors stay as they are.
  /// \returns the workers that contributed to the result.
  /// \throws Error as `allreduce`; also kRootLost and kMismatch as from `gather`.
  /// \{
  Contributors reduce(ConstTensorView in, TensorView out, Root root, ReduceOp op = ReduceOp::kSum,
                      CudaStream stream = {});
  Contributors reduce(TensorView data, Root root, ReduceOp op = ReduceOp::kSum,
                      CudaStream stream = {}) {
    return reduce(data, data, root, op, stream);
  }
  template <Element T>
  Contributors reduce(std::span<T> data, Root root, ReduceOp op = ReduceOp::kSum) {
    return reduce(view(data), root, op);
  }
  template <detail::ContiguousRange R>
  Contributors reduce(R&& data, Root root, ReduceOp op = ReduceOp::kSum) {
    return reduce(view(detail::output_of(std::forward<R>(data))), root, op);
  }
  /// \}

  /// Combines the tensors of the members with lower ranks and of this one, element by element:
  /// each member gets another result. The divisor of an average is the number of tensors in it.
  /// Ranks are those of the view that completes the call.
  /// \returns the workers of that view.
  /// \throws Error as `allreduce`.
  /// \{
  Contributors scan(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                    CudaStream stream = {});
  Contributors scan(TensorView data, ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
    return scan(data, data, op, stream);
  }
  template <Element T>
  Contributors scan(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
    return scan(view(data), op);
  }
  template <detail::ContiguousRange R>
  Contributors scan(R&& data, ReduceOp op = ReduceOp::kSum) {
    return scan(view(detail::output_of(std::forward<R>(data))), op);
  }
  /// \}

  /// As `scan`, without the tensor of this member. Rank 0 gets the neutral element of `op`: 0 of a
  /// sum and an average, 1 of a product, the greatest value of a minimum (of floats infinity), the
  /// least of a maximum.
  /// \returns the workers of the view that completed the call.
  /// \throws Error as `allreduce`.
  /// \{
  Contributors exscan(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                      CudaStream stream = {});
  Contributors exscan(TensorView data, ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
    return exscan(data, data, op, stream);
  }
  template <Element T>
  Contributors exscan(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
    return exscan(view(data), op);
  }
  template <detail::ContiguousRange R>
  Contributors exscan(R&& data, ReduceOp op = ReduceOp::kSum) {
    return exscan(view(detail::output_of(std::forward<R>(data))), op);
  }
  /// \}

  /// Waits until every member has called it.
  /// \returns the members that have called it.
  /// \throws Error as every collective.
  Contributors barrier();

  /// Sends `data` to another member, which receives it by `recv` with the same tag. Messages from
  /// one member to another with one tag keep their order; others overtake each other. Nothing is
  /// buffered: the call returns when the message is there, so two members that send to each other
  /// at once have to use `send_async` or `recv_async`. `stream` is for tensors on a CUDA device,
  /// which go through host memory under every backend.
  ///
  /// Rank 0 orders messages as named calls, and all members meet at the end of each: it costs a
  /// barrier, and suits tensors of some size, not a pipeline of small ones.
  /// \returns the two workers.
  /// \throws Error as every collective; also kInvalidArgument for a message to this worker itself
  ///   or a rank that is not there; kRootLost if the other one is no member, or leaves the job
  ///   before the message is complete; kMismatch, on both, if the element types differ.
  /// \{
  Contributors send(ConstTensorView data, Root to, int tag = 0, CudaStream stream = {});
  template <detail::ContiguousRange R>
  Contributors send(const R& data, Root to, int tag = 0) {
    return send(view(detail::input_of(data)), to, tag);
  }
  /// \}

  /// Receives a message that another member sends by `send` with the same tag. `out` has the
  /// message's element type, and room for it; the rest stays as it is.
  /// \returns the elements of the message.
  /// \throws Error as `send`; also kInvalidArgument if the message has no room in `out`. It is lost
  ///   then, and the sender learns nothing.
  /// \{
  ReceivedMessage recv(TensorView out, Root from, int tag = 0, CudaStream stream = {});
  template <detail::ContiguousRange R>
  ReceivedMessage recv(R&& out, Root from, int tag = 0) {
    return recv(view(detail::output_of(std::forward<R>(out))), from, tag);
  }
  /// \}

  /// Start a `send` or a `recv`. The tensor must live, and stay as it is, until it is complete.
  /// \returns the message under way.
  /// \throws Error kInvalidArgument and kRootLost as `send`, as far as they are known at once.
  /// \{
  [[nodiscard]] Work send_async(ConstTensorView data, Root to, int tag = 0, CudaStream stream = {});
  [[nodiscard]] Pending<ReceivedMessage> recv_async(TensorView out, Root from, int tag = 0,
                                                    CudaStream stream = {});
  /// \}

  /// For tensors whose element type is known only at run time, or whose result there may be no room
  /// for yet: gives the result to `take`, which is called once, before the function returns.
  /// `stream` is for tensors on a CUDA device. `row`: the shape of the block without its first
  /// axis; members with other rows get kMismatch.
  /// In a gather `take` is called on the root alone.
  /// \returns the workers with a contribution to the result.
  /// \throws Error as every collective. Exceptions of `take` pass through, and this worker leaves
  ///   the job.
  /// \{
  Contributors allgather(ConstTensorView block, const TakeGathered& take, CudaStream stream = {},
                         std::span<const std::size_t> row = {});
  Contributors reduce_scatter(ConstTensorView data, ReduceOp op, const TakeScattered& take,
                              CudaStream stream = {});
  Contributors alltoall(const BlocksView& blocks, const TakeGathered& take, CudaStream stream = {});
  Contributors gather(ConstTensorView block, Root root, const TakeGathered& take,
                      CudaStream stream = {}, std::span<const std::size_t> row = {});
  Contributors scatter(const BlocksView& blocks, Root root, const TakeScattered& take,
                       CudaStream stream = {});
  /// \}

 protected:
  Collectives() = default;
  ~Collectives() override = default;

 private:
  template <typename T>
  static void copy_out(std::span<const std::byte> bytes, std::vector<T>& values) {
    const auto* first = reinterpret_cast<const T*>(bytes.data());
    values.assign(first, first + bytes.size() / sizeof(T));
  }
  template <typename T>
  static auto take_into(Gathered<T>& result) {
    return [&result](std::span<const std::byte> bytes, std::vector<std::size_t> counts) {
      copy_out(bytes, result.values);
      result.counts = std::move(counts);
    };
  }
  template <typename T>
  static auto take_into(Scattered<T>& result) {
    return [&result](std::span<const std::byte> bytes, std::size_t offset) {
      copy_out(bytes, result.values);
      result.offset = offset;
    };
  }
};

}  // namespace elastic
