// The blocking collectives of a Context or a Group: what their arguments have to be, and the way
// that each takes.
#include <span>
#include <string_view>

#include "base/reduce_ops.hpp"
#include "elastic/collectives.hpp"
#include "runtime/call_scope.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {

Contributors Collectives::allreduce(ConstTensorView in, TensorView out, ReduceOp op,
                                    CudaStream stream) {
  runtime::check_reduction(in, out, op, "allreduce");
  if (device::on_device(in) || device::on_device(out)) {
    runtime::check_same_device(in, out, "allreduce");
    return scope()->allreduces().staged({&in, 1}, {&out, 1}, op, stream);
  }
  runtime::check_no_stream(stream);
  return scope()->allreduce(in, out, op);
}

Contributors Collectives::allreduce(ConstTensorView in, TensorView out, ReduceOp op, Scale scale,
                                    CudaStream stream) {
  if (scales_nothing(scale)) return allreduce(in, out, op, stream);
  runtime::check_reduction(in, out, op, "allreduce");
  runtime::check(scale, in.dtype, "allreduce");
  if (device::on_device(in) || device::on_device(out)) {
    runtime::check_same_device(in, out, "allreduce");
    return scope()->allreduces().staged({&in, 1}, {&out, 1}, op, stream, {}, scale);
  }
  runtime::check_no_stream(stream);
  return scope()->scaled_allreduce(in, out, op, scale);
}

Contributors Collectives::grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op,
                                            CudaStream stream) {
  runtime::check_group(tensors, "grouped_allreduce");
  runtime::check(op, tensors, "grouped_allreduce");
  return scope()->allreduces().grouped(tensors, op, stream);
}

Contributors Collectives::grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op,
                                            Scale scale, CudaStream stream) {
  runtime::check_group(tensors, "grouped_allreduce");
  runtime::check(op, tensors, "grouped_allreduce");
  runtime::check(scale, tensors, "grouped_allreduce");
  return scope()->allreduces().grouped(tensors, op, stream, {}, scale);
}

Contributors Collectives::cast_allreduce(std::span<const CastTensor> tensors, ReduceOp op,
                                         CudaStream stream) {
  return scope()->allreduces().cast(tensors, op, stream);
}

Work Collectives::allreduce_async(std::string_view name, TensorView data, ReduceOp op,
                                  CudaStream stream) {
  return scope()->submit("allreduce_async", name, {&data, 1}, op, Scale(1, 1), stream);
}

Work Collectives::allreduce_async(std::string_view name, TensorView data, ReduceOp op, Scale scale,
                                  CudaStream stream) {
  return scope()->submit("allreduce_async", name, {&data, 1}, op, scale, stream);
}

Work Collectives::grouped_allreduce_async(std::string_view name,
                                          std::span<const TensorView> tensors, ReduceOp op,
                                          CudaStream stream) {
  return scope()->submit("grouped_allreduce_async", name, tensors, op, Scale(1, 1), stream);
}

Work Collectives::grouped_allreduce_async(std::string_view name,
                                          std::span<const TensorView> tensors, ReduceOp op,
                                          Scale scale, CudaStream stream) {
  return scope()->submit("grouped_allreduce_async", name, tensors, op, scale, stream);
}

Contributors Collectives::broadcast(TensorView data, int root, CudaStream stream) {
  return scope()->collectives().broadcast(data, root, stream);
}

Contributors Collectives::broadcast_from(TensorView data, WorkerId root, CudaStream stream) {
  return scope()->collectives().broadcast(data, root, stream);
}

Contributors Collectives::allgather(ConstTensorView block, const TakeGathered& take,
                                    CudaStream stream, std::span<const std::size_t> row) {
  return scope()->collectives().allgather(block, take, stream, row);
}

GatheredBlocks Collectives::allgather(ConstTensorView block, TensorView out, CudaStream stream,
                                      std::span<const std::size_t> row) {
  return scope()->collectives().allgather(block, out, stream, row);
}

Contributors Collectives::reduce_scatter(ConstTensorView data, ReduceOp op,
                                         const TakeScattered& take, CudaStream stream) {
  runtime::check(op, data.dtype, "reduce_scatter");
  runtime::check_elementwise(op, "reduce_scatter");
  return scope()->collectives().reduce_scatter(data, op, take, stream);
}

ScatteredPart Collectives::reduce_scatter(ConstTensorView data, TensorView out, ReduceOp op,
                                          CudaStream stream) {
  runtime::check(op, data.dtype, "reduce_scatter");
  runtime::check_elementwise(op, "reduce_scatter");
  return scope()->collectives().reduce_scatter(data, out, op, stream);
}

ScatteredTensors Collectives::grouped_reduce_scatter(std::span<const ConstTensorView> inputs,
                                                     std::span<const TensorView> outputs,
                                                     ReduceOp op, CudaStream stream) {
  return scope()->collectives().grouped().reduce_scatter(inputs, outputs, op, stream);
}

GatheredTensors Collectives::grouped_allgather(std::span<const ConstTensorView> blocks,
                                               std::span<const TensorView> outputs,
                                               CudaStream stream) {
  return scope()->collectives().grouped().allgather(blocks, outputs, stream);
}

Contributors Collectives::alltoall(const BlocksView& blocks, const TakeGathered& take,
                                   CudaStream stream) {
  return scope()->collectives().alltoall(blocks, take, stream);
}

GatheredBlocks Collectives::alltoall(const BlocksView& blocks, TensorView out, CudaStream stream) {
  return scope()->collectives().alltoall(blocks, out, stream);
}

Contributors Collectives::gather(ConstTensorView block, Root root, const TakeGathered& take,
                                 CudaStream stream, std::span<const std::size_t> row) {
  return scope()->collectives().gather(block, root, take, stream, row);
}

GatheredBlocks Collectives::gather(ConstTensorView block, TensorView out, Root root,
                                   CudaStream stream, std::span<const std::size_t> row) {
  return scope()->collectives().gather(block, out, root, stream, row);
}

Contributors Collectives::scatter(const BlocksView& blocks, Root root, const TakeScattered& take,
                                  CudaStream stream) {
  return scope()->collectives().scatter(blocks, root, take, stream);
}

ScatteredPart Collectives::scatter(const BlocksView& blocks, TensorView out, Root root,
                                   CudaStream stream) {
  return scope()->collectives().scatter(blocks, out, root, stream);
}

Contributors Collectives::reduce(ConstTensorView in, TensorView out, Root root, ReduceOp op,
                                 CudaStream stream) {
  runtime::check_elementwise(op, "reduce");
  if (out.count > 0) {
    runtime::check_reduction(in, out, op, "reduce");
  } else {  // of a member that is not the root
    runtime::check(in, "reduce", "input");
    runtime::check(op, in.dtype, "reduce");
  }
  return scope()->collectives().reduce(in, out, op, root, stream);
}

Contributors Collectives::scan(ConstTensorView in, TensorView out, ReduceOp op, CudaStream stream) {
  runtime::check_reduction(in, out, op, "scan");
  runtime::check_elementwise(op, "scan");
  return scope()->collectives().scan("scan", in, out, op, /*exclusive=*/false, stream);
}

Contributors Collectives::exscan(ConstTensorView in, TensorView out, ReduceOp op,
                                 CudaStream stream) {
  runtime::check_reduction(in, out, op, "exscan");
  runtime::check_elementwise(op, "exscan");
  return scope()->collectives().scan("exscan", in, out, op, /*exclusive=*/true, stream);
}

Work Collectives::send_async(ConstTensorView data, Root to, int tag, CudaStream stream) {
  return scope()->send(data, to, tag, stream);
}

Pending<ReceivedMessage> Collectives::recv_async(TensorView out, Root from, int tag,
                                                 CudaStream stream) {
  auto result = std::make_shared<ReceivedMessage>();
  Work work = scope()->receive(out, from, tag, stream, result);
  return {std::move(work), std::move(result)};
}

Contributors Collectives::send(ConstTensorView data, Root to, int tag, CudaStream stream) {
  return send_async(data, to, tag, stream).wait();
}

ReceivedMessage Collectives::recv(TensorView out, Root from, int tag, CudaStream stream) {
  return recv_async(out, from, tag, stream).wait();
}

Contributors Collectives::barrier() {
  return scope()->barrier();
}

}  // namespace elastic
