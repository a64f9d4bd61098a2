// The collectives of all members.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
                                            const TensorView& out, ReduceOp op) {
  const coordinator::SmallAttempt small{
      .call = {in.dtype,
               op,
               {static_cast<const std::byte*>(in.data), in.bytes()},
               coordinator::allreduce_fingerprint(in.dtype, op, in.count)},
      .take = [&out](const auto& /*members*/, const collectives::Payload& payload) {
        std::copy_n(payload.data.data(), out.bytes(), static_cast<std::byte*>(out.data));
      }};
  auto done = lane.run_small(turn, small);
  if (!done) return std::nullopt;
  Contributors contributors = runtime::value_or_throw(std::move(*done));
  if (op == ReduceOp::kAverage) {
    kernels::divide(out.dtype, static_cast<std::byte*>(out.data), out.count,
                    static_cast<std::uint32_t>(contributors.size()));
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

/// The turn is kept: an attempt that has begun goes on as the operation.
Result<Contributors> Context::Impl::run(const coordinator::SmallAttempt& small,
                                        const MakeOperation& make) {
  refuse_in_callback("a collective");
  const runtime::Blocked blocked;
  flush();
  coordinator::Lane& lane = control().lane(runtime::kUnnamedLane);
  const coordinator::Lane::Turn turn = lane.take_turn();
  if (auto done = lane.run_small(turn, small)) return *std::move(done);
  (void)members();
  return lane.run(turn, *make(), options_.view_timeout);
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

void Context::Impl::prepare_named(const char* call, std::string_view name) const {
  refuse_in_callback(call);
  if (name.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) + ": a named call needs a name that is not empty");
  }
  (void)members();
}

void Context::Impl::prepare_named(const char* call, std::string_view name,
                                  const ConstTensorView& tensor) const {
  prepare_named(call, name);
  if (device::on_device(tensor)) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) +
                    ": this form of a named call takes tensors in host memory; with a name a "
                    "tensor on a device goes in place (allreduce) or to an output on the device "
                    "(allgather, reduce_scatter), and without a name in any form");
  }
  check_lies_on_host(tensor);
}

Work Context::Impl::submit(const char* call, std::string_view name, const ConstTensorView& in,
                           const TensorView& out, ReduceOp op) {
  prepare_named(call, name, in);
  prepare_named(call, name, out);
  return Work(runtime::value_or_throw(coordinator().submit(
      std::string(name), std::vector<ConstTensorView>{in}, std::vector<TensorView>{out}, op)));
}

Work Context::Impl::submit(const char* call, const ConstTensorView& tensor, NamedCall named) {
  prepare_named(call, named.request.name, tensor);
  return Work(runtime::value_or_throw(coordinator().submit(std::move(named))));
}

Work Context::Impl::submit(const char* call, std::string_view name, const ConstTensorView& in,
                           const TensorView& out, CudaStream stream, const MakeNamed& make) {
  prepare_named(call, name);
  const Staged staged = stage_named(call, {&in, 1}, {&out, 1}, stream, fetch());
  const runtime::NamedPlaces places(
      in, out, staged, [this, staged](std::size_t bytes) { return bring_back(staged, bytes); });
  return Work(runtime::value_or_throw(coordinator().submit(make(places), staged)));
}

Work Context::Impl::queue(const char* call, std::function<Contributors()> make) {
  refuse_in_callback(call);
  (void)members();
  return Work(queue_.add(std::move(make)));
}

namespace {

/// The other end of a message.
WorkerId peer_in(const coordinator::Members& members, const char* call, const Root& peer) {
  const int rank = peer.worker() ? members.rank_of(*peer.worker()) : peer.rank();
  if (peer.worker() && rank < 0) {
    throw Error(ErrorCode::kRootLost, std::string(call) +
                                          ": the worker named is no member; choose one "
                                          "that is, and call again");
  }
  if (rank < 0 || rank >= members.size()) {
    throw Error(ErrorCode::kInvalidArgument, std::string(call) + ": " + std::to_string(rank) +
                                                 " is no rank; there are " +
                                                 std::to_string(members.size()));
  }
  if (rank == members.rank) {
    throw Error(ErrorCode::kInvalidArgument, std::string(call) + ": rank " + std::to_string(rank) +
                                                 " is this worker itself; messages are for others");
  }
  return (*members.ids)[static_cast<std::size_t>(rank)];
}

}  // namespace

Context::Impl::Staged Context::Impl::stage_named(const char* call,
                                                 std::span<const ConstTensorView> inputs,
                                                 std::span<const TensorView> outputs,
                                                 CudaStream stream, device::Fetch when) {
  refuse_in_callback(call);
  (void)members();
  const auto on_device = [](const ConstTensorView& each) { return device::on_device(each); };
  if (std::ranges::none_of(inputs, on_device) && std::ranges::none_of(outputs, on_device)) {
    runtime::check_no_stream(stream);
    for (const ConstTensorView& each : inputs) check_lies_on_host(each);
    for (const TensorView& each : outputs) check_lies_on_host(each);
    return nullptr;
  }
  Staged staged = runtime::value_or_throw(devices_.stage(call, inputs, outputs, stream, when));
  runtime::raise_if(staged->start());
  return staged;
}

Status Context::Impl::bring_back(const Staged& staged, std::size_t bytes) {
  Status back = staged->send_back(bytes);
  if (back.ok()) back = staged->wait_until_back();
  return back.ok() ? back : leave_without_result(back);
}

Work Context::Impl::send(const std::string& group, const coordinator::Members& members,
                         const ConstTensorView& data, const Root& peer, int tag,
                         CudaStream stream) {
  runtime::check(data, "send");
  const WorkerId to = peer_in(members, "send", peer);
  const TensorView none;
  const Staged staged = stage_named("send", {&data, 1}, {&none, 1}, stream);
  const ConstTensorView& given = staged ? staged->tensors().front().input : data;
  return Work(runtime::value_or_throw(coordinator().submit(
      messages_.send({group, control().identity().id, to, tag}, given), staged)));
}

/// The rest of `out`, behind the message, stays as it is on the device, too.
Work Context::Impl::receive(const std::string& group, const coordinator::Members& members,
                            const TensorView& out, const Root& peer, int tag, CudaStream stream,
                            const std::shared_ptr<ReceivedMessage>& result) {
  runtime::check(out, "recv");
  const WorkerId from = peer_in(members, "recv", peer);
  const ConstTensorView none;
  const Staged staged = stage_named("recv", {&none, 1}, {&out, 1}, stream);
  const TensorView& room = staged ? staged->tensors().front().output : out;
  NamedCall call = messages_.receive({group, from, control().identity().id, tag}, room, result);
  if (staged) {
    call.conclude = [this, staged, result, received = std::move(call.conclude)] {
      Status status = received();
      const std::size_t bytes = result->count * size_of(staged->tensors().front().output.dtype);
      return status.ok() ? bring_back(staged, bytes) : status;
    };
  }
  return Work(runtime::value_or_throw(coordinator().submit(std::move(call), staged)));
}

Contributors Context::Impl::barrier() {
  coordinator::BarrierOperation operation;
  return runtime::value_or_throw(run(operation));
}

runtime::ScopeUse Context::scope() {
  const auto use = impl_.operator->();
  return {*use.operator->(), use.prolong()};
}

}  // namespace elastic
