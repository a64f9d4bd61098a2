#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "elastic/detail/export.hpp"
#include "elastic/detail/ranges.hpp"
#include "elastic/grouped_results.hpp"
#include "elastic/results.hpp"
#include "elastic/root.hpp"
#include "elastic/types.hpp"
#include "elastic/work.hpp"

namespace elastic {

namespace runtime {
class ScopeOf;
class ScopeUse;
}  // namespace runtime
class Collectives;

/// The asynchronous forms of the collectives, which Collectives has as its own members. Each does
/// what the blocking call of the same name does, with the same errors, which Work::wait throws.
/// Tensors must live, and inputs stay as they are, until the operation is complete.
///
/// **Without a name** calls keep the program order, among themselves and with blocking calls: all
/// members make the same ones in the same order, and a blocking call waits for those before it. A
/// thread of the library makes them one after another, so each overlaps with the program, and not
/// with the next one.
///
/// **With a name** they may be submitted in any order and from any thread, as
/// Collectives::allreduce_async, whose rules hold. All of them share one sequence of operations
/// with the named allreduces. Only allreduces are fused. Their tensors are in host memory, but for
/// calls with a `stream`, whose tensors may be on a CUDA device. A root that is given as a rank is
/// the worker that has it in the view in which the call runs; if that one dies, the call runs again
/// with the worker that has the rank then. A function that takes a result (TakeGathered,
/// TakeScattered) is called on a thread of the library: it should be short, and an exception from
/// it makes this worker leave the job.
class ELASTIC_API AsyncCollectives {
 public:
  /// Receives the result of an allgather, alltoall or gather: all blocks, and the elements of each
  /// contributor. The bytes are in host memory and valid only in this function. It may ask for
  /// rank, size and the like; collectives, Work::wait, `run` and `shutdown` throw
  /// Error(kInvalidArgument) in it, because they would wait for the call that it is a part of.
  using TakeGathered =
      std::function<void(std::span<const std::byte> values, std::vector<std::size_t> counts)>;
  /// Receives the result of a reduce_scatter or scatter: this member's part, and its offset in the
  /// whole tensor in elements. Otherwise as TakeGathered.
  using TakeScattered = std::function<void(std::span<const std::byte> values, std::size_t offset)>;

  /// Start the call of the same name without `_async`, in program order.
  /// \returns the operation under way.
  /// \throws Error kNotInitialized: this worker is joining, or has left the job.
  /// \{
  [[nodiscard]] Work allreduce_async(ConstTensorView in, TensorView out,
                                     ReduceOp op = ReduceOp::kSum, CudaStream stream = {});
  [[nodiscard]] Work allreduce_async(TensorView data, ReduceOp op = ReduceOp::kSum,
                                     CudaStream stream = {}) {
    return allreduce_async(data, data, op, stream);
  }
  template <Element T>
  [[nodiscard]] Work allreduce_async(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
    return allreduce_async(view(data), op);
  }
  template <Element T>
  [[nodiscard]] Work allreduce_async(std::span<const T> in, std::span<T> out,
                                     ReduceOp op = ReduceOp::kSum) {
    return allreduce_async(view(in), view(out), op);
  }
  template <detail::ContiguousRange R>
  [[nodiscard]] Work allreduce_async(R&& data, ReduceOp op = ReduceOp::kSum) {
    return allreduce_async(view(detail::output_of(std::forward<R>(data))), op);
  }
  // Two texts, or a text and a range, are no tensors: the first is a name.
  template <detail::ContiguousRange In, detail::ContiguousRange Out>
  requires Element<detail::ElementOf<In>>
  [[nodiscard]] Work allreduce_async(In&& in, Out&& out, ReduceOp op = ReduceOp::kSum) {
    return allreduce_async(view(detail::lasting_input_of(std::forward<In>(in))),
                           view(detail::output_of(std::forward<Out>(out))), op);
  }
  [[nodiscard]] Work grouped_allreduce_async(std::span<const TensorView> tensors,
                                             ReduceOp op = ReduceOp::kSum, CudaStream stream = {});
  [[nodiscard]] Work broadcast_async(TensorView data, Root root, CudaStream stream = {});
  [[nodiscard]] Pending<GatheredBlocks> allgather_async(ConstTensorView block, TensorView out,
                                                        CudaStream stream = {});
  [[nodiscard]] Pending<ScatteredPart> reduce_scatter_async(ConstTensorView data, TensorView out,
                                                            ReduceOp op = ReduceOp::kSum,
                                                            CudaStream stream = {});
  [[nodiscard]] Pending<ScatteredTensors> grouped_reduce_scatter_async(
      std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs,
      ReduceOp op = ReduceOp::kSum, CudaStream stream = {});
  [[nodiscard]] Pending<ScatteredTensors> grouped_reduce_scatter_async(
      std::span<const TensorView> inputs, std::span<const TensorView> outputs,
      ReduceOp op = ReduceOp::kSum, CudaStream stream = {}) {
    return grouped_reduce_scatter_async(std::vector<ConstTensorView>(inputs.begin(), inputs.end()),
                                        outputs, op, stream);
  }
  [[nodiscard]] Pending<GatheredTensors> grouped_allgather_async(
      std::span<const ConstTensorView> blocks, std::span<const TensorView> outputs,
      CudaStream stream = {});
  [[nodiscard]] Pending<GatheredTensors> grouped_allgather_async(
      std::span<const TensorView> blocks, std::span<const TensorView> outputs,
      CudaStream stream = {}) {
    return grouped_allgather_async(std::vector<ConstTensorView>(blocks.begin(), blocks.end()),
                                   outputs, stream);
  }
  [[nodiscard]] Pending<GatheredBlocks> alltoall_async(const BlocksView& blocks, TensorView out,
                                                       CudaStream stream = {});
  [[nodiscard]] Pending<GatheredBlocks> gather_async(ConstTensorView block, TensorView out,
                                                     Root root, CudaStream stream = {});
  [[nodiscard]] Pending<ScatteredPart> scatter_async(const BlocksView& blocks, TensorView out,
                                                     Root root, CudaStream stream = {});
  [[nodiscard]] Work reduce_async(ConstTensorView in, TensorView out, Root root,
                                  ReduceOp op = ReduceOp::kSum, CudaStream stream = {});
  [[nodiscard]] Work scan_async(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                                CudaStream stream = {});
  [[nodiscard]] Work exscan_async(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::kSum,
                                  CudaStream stream = {});
  [[nodiscard]] Work barrier_async();
  /// \}

  /// The same for results that there may be no room for yet: `take` is called with them on a thread
  /// of the library.
  /// \returns the operation under way.
  /// \throws Error as above.
  /// \{
  [[nodiscard]] Work allgather_async(ConstTensorView block, TakeGathered take,
                                     CudaStream stream = {}, std::span<const std::size_t> row = {});
  [[nodiscard]] Work reduce_scatter_async(ConstTensorView data, ReduceOp op, TakeScattered take,
                                          CudaStream stream = {});
  [[nodiscard]] Work alltoall_async(const BlocksView& blocks, TakeGathered take,
                                    CudaStream stream = {});
  [[nodiscard]] Work gather_async(ConstTensorView block, Root root, TakeGathered take,
                                  CudaStream stream = {}, std::span<const std::size_t> row = {});
  [[nodiscard]] Work scatter_async(const BlocksView& blocks, Root root, TakeScattered take,
                                   CudaStream stream = {});
  /// \}

  /// The same with typed results.
  /// \returns the operation under way.
  /// \throws Error as above.
  /// \{
  template <Element T>
  [[nodiscard]] Pending<Gathered<T>> allgather_async(std::span<const T> block) {
    return pending<Gathered<T>>([&](auto take) { return allgather_async(view(block), take); });
  }
  template <Element T>
  [[nodiscard]] Pending<Scattered<T>> reduce_scatter_async(std::span<const T> data,
                                                           ReduceOp op = ReduceOp::kSum) {
    return pending<Scattered<T>>(
        [&](auto take) { return reduce_scatter_async(view(data), op, take); });
  }
  template <Element T>
  [[nodiscard]] Pending<Gathered<T>> alltoall_async(std::span<const T> data,
                                                    std::span<const std::size_t> counts = {},
                                                    const Contributors& to = {}) {
    return pending<Gathered<T>>([&](auto take) {
      return alltoall_async({view(data), counts, to}, take);
    });
  }
  /// \}

  /// Start the call of the same name without `_async` under a name.
  /// \returns the operation under way.
  /// \throws Error kInvalidArgument: a name that is empty or still under way here, a tensor that a
  ///   collective refuses, or one on a device where the call has no `stream`; kNotInitialized as
  ///   above.
  /// \{
  [[nodiscard]] Work allreduce_async(std::string_view name, ConstTensorView in, TensorView out,
                                     ReduceOp op = ReduceOp::kSum);
  [[nodiscard]] Work broadcast_async(std::string_view name, TensorView data, Root root,
                                     CudaStream stream = {});
  [[nodiscard]] Work allgather_async(std::string_view name, ConstTensorView block,
                                     TakeGathered take, std::span<const std::size_t> row = {});
  [[nodiscard]] Pending<GatheredBlocks> allgather_async(std::string_view name,
                                                        ConstTensorView block, TensorView out,
                                                        CudaStream stream = {});
  [[nodiscard]] Work reduce_scatter_async(std::string_view name, ConstTensorView data, ReduceOp op,
                                          TakeScattered take);
  [[nodiscard]] Pending<ScatteredPart> reduce_scatter_async(std::string_view name,
                                                            ConstTensorView data, TensorView out,
                                                            ReduceOp op = ReduceOp::kSum,
                                                            CudaStream stream = {});
  [[nodiscard]] Work alltoall_async(std::string_view name, const BlocksView& blocks,
                                    TakeGathered take);
  [[nodiscard]] Pending<GatheredBlocks> alltoall_async(std::string_view name,
                                                       const BlocksView& blocks, TensorView out);
  [[nodiscard]] Work gather_async(std::string_view name, ConstTensorView block, Root root,
                                  TakeGathered take, std::span<const std::size_t> row = {});
  [[nodiscard]] Pending<GatheredBlocks> gather_async(std::string_view name, ConstTensorView block,
                                                     TensorView out, Root root);
  [[nodiscard]] Work scatter_async(std::string_view name, const BlocksView& blocks, Root root,
                                   TakeScattered take);
  [[nodiscard]] Pending<ScatteredPart> scatter_async(std::string_view name,
                                                     const BlocksView& blocks, TensorView out,
                                                     Root root);
  [[nodiscard]] Work reduce_async(std::string_view name, ConstTensorView in, TensorView out,
                                  Root root, ReduceOp op = ReduceOp::kSum);
  [[nodiscard]] Work scan_async(std::string_view name, ConstTensorView in, TensorView out,
                                ReduceOp op = ReduceOp::kSum);
  [[nodiscard]] Work exscan_async(std::string_view name, ConstTensorView in, TensorView out,
                                  ReduceOp op = ReduceOp::kSum);
  [[nodiscard]] Work barrier_async(std::string_view name);
  template <Element T>
  [[nodiscard]] Pending<Gathered<T>> allgather_async(std::string_view name,
                                                     std::span<const T> block) {
    return pending<Gathered<T>>(
        [&](auto take) { return allgather_async(name, view(block), take); });
  }
  template <Element T>
  [[nodiscard]] Pending<Scattered<T>> reduce_scatter_async(std::string_view name,
                                                           std::span<const T> data,
                                                           ReduceOp op = ReduceOp::kSum) {
    return pending<Scattered<T>>(
        [&](auto take) { return reduce_scatter_async(name, view(data), op, take); });
  }
  template <Element T>
  [[nodiscard]] Pending<Gathered<T>> alltoall_async(std::string_view name, std::span<const T> data,
                                                    std::span<const std::size_t> counts = {},
                                                    const Contributors& to = {}) {
    return pending<Gathered<T>>([&](auto take) {
      return alltoall_async(name, {view(data), counts, to}, take);
    });
  }
  /// \}

 protected:
  AsyncCollectives() = default;
  virtual ~AsyncCollectives() = default;

 private:
  template <typename T>
  static void put(Gathered<T>& result, std::span<const std::byte> bytes,
                  std::vector<std::size_t> counts) {
    const auto* first = reinterpret_cast<const T*>(bytes.data());
    result.values.assign(first, first + bytes.size() / sizeof(T));
    result.counts = std::move(counts);
  }
  template <typename T>
  static void put(Scattered<T>& result, std::span<const std::byte> bytes, std::size_t offset) {
    const auto* first = reinterpret_cast<const T*>(bytes.data());
    result.values.assign(first, first + bytes.size() / sizeof(T));
    result.offset = offset;
  }
  /// Starts a call with a function that keeps its result.
  template <typename Result, typename Start>
  static Pending<Result> pending(const Start& start) {
    auto result = std::make_shared<Result>();
    Work work = start([result](std::span<const std::byte> bytes, auto shape) {
      put(*result, bytes, std::move(shape));
    });
    return {std::move(work), std::move(result)};
  }

  Collectives& blocking();
  /// The members that make the calls.
  virtual runtime::ScopeUse scope() = 0;
  friend class Collectives;
  friend class runtime::ScopeOf;
};

}  // namespace elastic
