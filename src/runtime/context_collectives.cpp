// The collectives of Context.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/in_callback.hpp"
#include "base/reduce_ops.hpp"
#include "collectives/kernels/reduce.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/raise.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {

namespace {

/// Nothing if the caller has to use `Lane::run`.
std::optional<Contributors> allreduce_small(coordinator::Lane& lane,
                                            const coordinator::Lane::Turn& turn, ConstTensorView in,
                                            TensorView out, ReduceOp op) {
  const collectives::SmallCall call{in.dtype,
                                    op,
                                    {static_cast<const std::byte*>(in.data), in.bytes()},
                                    coordinator::allreduce_fingerprint(in.dtype, op, in.count)};
  auto* const result = static_cast<std::byte*>(out.data);
  auto done = lane.run_small(turn, call, result);
  if (!done) return std::nullopt;
  Contributors contributors = runtime::value_or_throw(std::move(*done));
  if (op == ReduceOp::kAverage) {
    kernels::divide(out.dtype, result, out.count, static_cast<std::uint32_t>(contributors.size()));
  }
  return contributors;
}

}  // namespace

Result<Contributors> Context::Impl::run(coordinator::Operation& operation) {
  refuse_in_callback("a collective");
  const runtime::Blocked blocked;
  (void)members();
  flush();
  return control().lane(runtime::kUnnamedLane).run(operation, options_.view_timeout);
}

void Context::Impl::check_lies_on_host(const ConstTensorView& tensor) const {
  runtime::raise_if(devices_.check_host(tensor));
}

Contributors Context::Impl::allreduce(ConstTensorView in, TensorView out, ReduceOp op) {
  refuse_in_callback("allreduce");
  check_lies_on_host(in);
  check_lies_on_host(out);
  const runtime::Blocked blocked;
  flush();
  coordinator::Lane& lane = control().lane(runtime::kUnnamedLane);
  const coordinator::Lane::Turn turn = lane.take_turn();
  if (auto small = allreduce_small(lane, turn, in, out, op)) return *std::move(small);
  (void)members();
  coordinator::AllreduceOperation operation({in}, {out}, op);
  return runtime::value_or_throw(lane.run(turn, operation, options_.view_timeout));
}

Contributors Context::Impl::scaled_allreduce(ConstTensorView in, TensorView out, ReduceOp op,
                                             Scale scale) {
  check_lies_on_host(in);
  check_lies_on_host(out);
  coordinator::AllreduceOperation operation({in}, {out}, op, {}, scale);
  return runtime::value_or_throw(run(operation));
}

Work Context::Impl::submit(const char* call, std::string_view name,
                           std::span<const TensorView> tensors, ReduceOp op, Scale scale,
                           CudaStream stream) {
  refuse_in_callback(call);
  (void)members();
  runtime::check_group(tensors, call);
  runtime::check(op, tensors, call);
  runtime::check(scale, tensors, call);
  if (runtime::any_on_device(tensors)) {
    const std::vector<ConstTensorView> inputs(tensors.begin(), tensors.end());
    const auto staged = runtime::value_or_throw(
        devices_.stage("allreduce '" + std::string(name) + "'", inputs, tensors, stream,
                       scales_nothing(scale) ? fetch() : device::Fetch::kAtOnce));
    runtime::raise_if(staged->start());
    return Work(runtime::value_or_throw(
        coordinator().submit(std::string(name), staged->outputs(), op, staged, scale)));
  }
  runtime::check_no_stream(stream);
  for (const TensorView& tensor : tensors) check_lies_on_host(tensor);
  return Work(runtime::value_or_throw(coordinator().submit(
      std::string(name), {tensors.begin(), tensors.end()}, op, nullptr, scale)));
}

void Context::Impl::prepare_named(const char* call, const ConstTensorView& tensor) const {
  refuse_in_callback(call);
  (void)members();
  if (device::on_device(tensor)) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) +
                    ": named calls take tensors in host memory, but for allreduces in place; "
                    "without a name they take this one");
  }
  check_lies_on_host(tensor);
}

Work Context::Impl::submit(const char* call, std::string_view name, const ConstTensorView& in,
                           const TensorView& out, ReduceOp op) {
  prepare_named(call, in);
  prepare_named(call, out);
  return Work(runtime::value_or_throw(coordinator().submit(
      std::string(name), std::vector<ConstTensorView>{in}, std::vector<TensorView>{out}, op)));
}

Work Context::Impl::submit(const char* call, const ConstTensorView& tensor,
                           coordinator::Coordinator::NamedCall named) {
  prepare_named(call, tensor);
  return Work(runtime::value_or_throw(coordinator().submit(std::move(named))));
}

Work Context::Impl::queue(const char* call, std::function<Contributors()> make) {
  refuse_in_callback(call);
  (void)members();
  return Work(queue_.add(std::move(make)));
}

Contributors Context::allreduce(ConstTensorView in, TensorView out, ReduceOp op,
                                CudaStream stream) {
  runtime::check_reduction(in, out, op, "allreduce");
  if (device::on_device(in) || device::on_device(out)) {
    runtime::check_same_device(in, out, "allreduce");
    return impl_->allreduces().staged({&in, 1}, {&out, 1}, op, stream);
  }
  runtime::check_no_stream(stream);
  return impl_->allreduce(in, out, op);
}

Contributors Context::allreduce(ConstTensorView in, TensorView out, ReduceOp op, Scale scale,
                                CudaStream stream) {
  if (scales_nothing(scale)) return allreduce(in, out, op, stream);
  runtime::check_reduction(in, out, op, "allreduce");
  runtime::check(scale, in.dtype, "allreduce");
  if (device::on_device(in) || device::on_device(out)) {
    runtime::check_same_device(in, out, "allreduce");
    return impl_->allreduces().staged({&in, 1}, {&out, 1}, op, stream, {}, scale);
  }
  runtime::check_no_stream(stream);
  return impl_->scaled_allreduce(in, out, op, scale);
}

Contributors Context::grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op,
                                        CudaStream stream) {
  runtime::check_group(tensors, "grouped_allreduce");
  runtime::check(op, tensors, "grouped_allreduce");
  return impl_->allreduces().grouped(tensors, op, stream);
}

Contributors Context::grouped_allreduce(std::span<const TensorView> tensors, ReduceOp op,
                                        Scale scale, CudaStream stream) {
  runtime::check_group(tensors, "grouped_allreduce");
  runtime::check(op, tensors, "grouped_allreduce");
  runtime::check(scale, tensors, "grouped_allreduce");
  return impl_->allreduces().grouped(tensors, op, stream, {}, scale);
}

Contributors Context::cast_allreduce(std::span<const CastTensor> tensors, ReduceOp op,
                                     CudaStream stream) {
  return impl_->allreduces().cast(tensors, op, stream);
}

Work Context::allreduce_async(std::string_view name, TensorView data, ReduceOp op,
                              CudaStream stream) {
  return impl_->submit("allreduce_async", name, {&data, 1}, op, Scale(1, 1), stream);
}

Work Context::allreduce_async(std::string_view name, TensorView data, ReduceOp op, Scale scale,
                              CudaStream stream) {
  return impl_->submit("allreduce_async", name, {&data, 1}, op, scale, stream);
}

Work Context::grouped_allreduce_async(std::string_view name, std::span<const TensorView> tensors,
                                      ReduceOp op, CudaStream stream) {
  return impl_->submit("grouped_allreduce_async", name, tensors, op, Scale(1, 1), stream);
}

Work Context::grouped_allreduce_async(std::string_view name, std::span<const TensorView> tensors,
                                      ReduceOp op, Scale scale, CudaStream stream) {
  return impl_->submit("grouped_allreduce_async", name, tensors, op, scale, stream);
}

Contributors Context::broadcast(TensorView data, int root, CudaStream stream) {
  return impl_->collectives().broadcast(data, root, stream);
}

Contributors Context::broadcast_from(TensorView data, WorkerId root, CudaStream stream) {
  return impl_->collectives().broadcast(data, root, stream);
}

Contributors Context::allgather(ConstTensorView block, const TakeGathered& take, CudaStream stream,
                                std::span<const std::size_t> row) {
  return impl_->collectives().allgather(block, take, stream, row);
}

GatheredBlocks Context::allgather(ConstTensorView block, TensorView out, CudaStream stream,
                                  std::span<const std::size_t> row) {
  return impl_->collectives().allgather(block, out, stream, row);
}

Contributors Context::reduce_scatter(ConstTensorView data, ReduceOp op, const TakeScattered& take,
                                     CudaStream stream) {
  runtime::check(op, data.dtype, "reduce_scatter");
  runtime::check_elementwise(op, "reduce_scatter");
  return impl_->collectives().reduce_scatter(data, op, take, stream);
}

ScatteredPart Context::reduce_scatter(ConstTensorView data, TensorView out, ReduceOp op,
                                      CudaStream stream) {
  runtime::check(op, data.dtype, "reduce_scatter");
  runtime::check_elementwise(op, "reduce_scatter");
  return impl_->collectives().reduce_scatter(data, out, op, stream);
}

Contributors Context::alltoall(const BlocksView& blocks, const TakeGathered& take,
                               CudaStream stream) {
  return impl_->collectives().alltoall(blocks, take, stream);
}

GatheredBlocks Context::alltoall(const BlocksView& blocks, TensorView out, CudaStream stream) {
  return impl_->collectives().alltoall(blocks, out, stream);
}

Contributors Context::gather(ConstTensorView block, Root root, const TakeGathered& take,
                             CudaStream stream, std::span<const std::size_t> row) {
  return impl_->collectives().gather(block, root, take, stream, row);
}

GatheredBlocks Context::gather(ConstTensorView block, TensorView out, Root root, CudaStream stream,
                               std::span<const std::size_t> row) {
  return impl_->collectives().gather(block, out, root, stream, row);
}

Contributors Context::scatter(const BlocksView& blocks, Root root, const TakeScattered& take,
                              CudaStream stream) {
  return impl_->collectives().scatter(blocks, root, take, stream);
}

ScatteredPart Context::scatter(const BlocksView& blocks, TensorView out, Root root,
                               CudaStream stream) {
  return impl_->collectives().scatter(blocks, out, root, stream);
}

Contributors Context::reduce(ConstTensorView in, TensorView out, Root root, ReduceOp op,
                             CudaStream stream) {
  runtime::check_elementwise(op, "reduce");
  if (out.count > 0) {
    runtime::check_reduction(in, out, op, "reduce");
  } else {  // of a member that is not the root
    runtime::check(in, "reduce", "input");
    runtime::check(op, in.dtype, "reduce");
  }
  return impl_->collectives().reduce(in, out, op, root, stream);
}

Contributors Context::scan(ConstTensorView in, TensorView out, ReduceOp op, CudaStream stream) {
  runtime::check_reduction(in, out, op, "scan");
  runtime::check_elementwise(op, "scan");
  return impl_->collectives().scan("scan", in, out, op, /*exclusive=*/false, stream);
}

Contributors Context::exscan(ConstTensorView in, TensorView out, ReduceOp op, CudaStream stream) {
  runtime::check_reduction(in, out, op, "exscan");
  runtime::check_elementwise(op, "exscan");
  return impl_->collectives().scan("exscan", in, out, op, /*exclusive=*/true, stream);
}

Contributors Context::barrier() {
  coordinator::BarrierOperation operation;
  return runtime::value_or_throw(impl_->run(operation));
}

}  // namespace elastic
