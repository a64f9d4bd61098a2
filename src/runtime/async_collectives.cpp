// The asynchronous collectives without a name: blocking calls on the thread of the CallQueue.
#include "elastic/async_collectives.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "elastic/collectives.hpp"
#include "runtime/call_scope.hpp"

namespace elastic {

namespace {

/// Queues a call whose result has contributors among other things.
template <typename Result, typename Call>
Pending<Result> queued(runtime::CallScope& scope, const char* name, Call call) {
  auto result = std::make_shared<Result>();
  Work work = scope.queue(name, [result, call = std::move(call)] {
    *result = call();
    return result->contributors;
  });
  return {std::move(work), std::move(result)};
}

using Row = std::vector<std::size_t>;
using Inputs = std::vector<ConstTensorView>;
using Outputs = std::vector<TensorView>;

}  // namespace

Collectives& AsyncCollectives::blocking() {
  return static_cast<Collectives&>(*this);
}

Work AsyncCollectives::allreduce_async(ConstTensorView in, TensorView out, ReduceOp op,
                                       CudaStream stream) {
  return scope()->queue("allreduce_async", [&its = blocking(), in, out, op, stream] {
    return its.allreduce(in, out, op, stream);
  });
}

Work AsyncCollectives::grouped_allreduce_async(std::span<const TensorView> tensors, ReduceOp op,
                                               CudaStream stream) {
  return scope()->queue(
      "grouped_allreduce_async",
      [&its = blocking(), all = std::vector<TensorView>(tensors.begin(), tensors.end()), op,
       stream] { return its.grouped_allreduce(all, op, stream); });
}

Work AsyncCollectives::broadcast_async(TensorView data, Root root, CudaStream stream) {
  return scope()->queue("broadcast_async", [&its = blocking(), data, root, stream] {
    return root.worker() ? its.broadcast_from(data, *root.worker(), stream)
                         : its.broadcast(data, root.rank(), stream);
  });
}

Pending<GatheredBlocks> AsyncCollectives::allgather_async(ConstTensorView block, TensorView out,
                                                          CudaStream stream) {
  return queued<GatheredBlocks>(
      *scope(), "allgather_async",
      [&its = blocking(), block, out, stream] { return its.allgather(block, out, stream); });
}

Pending<ScatteredPart> AsyncCollectives::reduce_scatter_async(ConstTensorView data, TensorView out,
                                                              ReduceOp op, CudaStream stream) {
  return queued<ScatteredPart>(*scope(), "reduce_scatter_async",
                               [&its = blocking(), data, out, op, stream] {
                                 return its.reduce_scatter(data, out, op, stream);
                               });
}

Pending<ScatteredTensors> AsyncCollectives::grouped_reduce_scatter_async(
    std::span<const ConstTensorView> inputs, std::span<const TensorView> outputs, ReduceOp op,
    CudaStream stream) {
  return queued<ScatteredTensors>(*scope(), "grouped_reduce_scatter_async",
                                  [&its = blocking(), from = Inputs(inputs.begin(), inputs.end()),
                                   to = Outputs(outputs.begin(), outputs.end()), op, stream] {
                                    return its.grouped_reduce_scatter(from, to, op, stream);
                                  });
}

Pending<GatheredTensors> AsyncCollectives::grouped_allgather_async(
    std::span<const ConstTensorView> blocks, std::span<const TensorView> outputs,
    CudaStream stream) {
  return queued<GatheredTensors>(*scope(), "grouped_allgather_async",
                                 [&its = blocking(), from = Inputs(blocks.begin(), blocks.end()),
                                  to = Outputs(outputs.begin(), outputs.end()),
                                  stream] { return its.grouped_allgather(from, to, stream); });
}

Pending<GatheredBlocks> AsyncCollectives::alltoall_async(const BlocksView& blocks, TensorView out,
                                                         CudaStream stream) {
  return queued<GatheredBlocks>(*scope(), "alltoall_async",
                                [&its = blocking(), owned = scope()->own(blocks), out, stream] {
                                  return its.alltoall(owned.view(), out, stream);
                                });
}

Pending<GatheredBlocks> AsyncCollectives::gather_async(ConstTensorView block, TensorView out,
                                                       Root root, CudaStream stream) {
  return queued<GatheredBlocks>(*scope(), "gather_async",
                                [&its = blocking(), block, out, root, stream] {
                                  return its.gather(block, out, root, stream);
                                });
}

Pending<ScatteredPart> AsyncCollectives::scatter_async(const BlocksView& blocks, TensorView out,
                                                       Root root, CudaStream stream) {
  return queued<ScatteredPart>(*scope(), "scatter_async",
                               [&its = blocking(), owned = scope()->own(blocks), out, root,
                                stream] { return its.scatter(owned.view(), out, root, stream); });
}

Work AsyncCollectives::reduce_async(ConstTensorView in, TensorView out, Root root, ReduceOp op,
                                    CudaStream stream) {
  return scope()->queue("reduce_async", [&its = blocking(), in, out, root, op, stream] {
    return its.reduce(in, out, root, op, stream);
  });
}

Work AsyncCollectives::scan_async(ConstTensorView in, TensorView out, ReduceOp op,
                                  CudaStream stream) {
  return scope()->queue("scan_async", [&its = blocking(), in, out, op, stream] {
    return its.scan(in, out, op, stream);
  });
}

Work AsyncCollectives::exscan_async(ConstTensorView in, TensorView out, ReduceOp op,
                                    CudaStream stream) {
  return scope()->queue("exscan_async", [&its = blocking(), in, out, op, stream] {
    return its.exscan(in, out, op, stream);
  });
}

Work AsyncCollectives::barrier_async() {
  return scope()->queue("barrier_async", [&its = blocking()] { return its.barrier(); });
}

Work AsyncCollectives::allgather_async(ConstTensorView block, TakeGathered take, CudaStream stream,
                                       std::span<const std::size_t> row) {
  return scope()->queue("allgather_async", [&its = blocking(), block, take = std::move(take),
                                            stream, row = Row(row.begin(), row.end())] {
    return its.allgather(block, take, stream, row);
  });
}

Work AsyncCollectives::reduce_scatter_async(ConstTensorView data, ReduceOp op, TakeScattered take,
                                            CudaStream stream) {
  return scope()->queue("reduce_scatter_async",
                        [&its = blocking(), data, op, take = std::move(take), stream] {
                          return its.reduce_scatter(data, op, take, stream);
                        });
}

Work AsyncCollectives::alltoall_async(const BlocksView& blocks, TakeGathered take,
                                      CudaStream stream) {
  return scope()->queue("alltoall_async",
                        [&its = blocking(), owned = scope()->own(blocks), take = std::move(take),
                         stream] { return its.alltoall(owned.view(), take, stream); });
}

Work AsyncCollectives::gather_async(ConstTensorView block, Root root, TakeGathered take,
                                    CudaStream stream, std::span<const std::size_t> row) {
  return scope()->queue("gather_async", [&its = blocking(), block, root, take = std::move(take),
                                         stream, row = Row(row.begin(), row.end())] {
    return its.gather(block, root, take, stream, row);
  });
}

Work AsyncCollectives::scatter_async(const BlocksView& blocks, Root root, TakeScattered take,
                                     CudaStream stream) {
  return scope()->queue("scatter_async", [&its = blocking(), owned = scope()->own(blocks), root,
                                          take = std::move(take), stream] {
    return its.scatter(owned.view(), root, take, stream);
  });
}

}  // namespace elastic
