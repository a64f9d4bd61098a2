#include "runtime/collectives.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/in_callback.hpp"
#include "collectives/device/placement.hpp"
#include "coordinator/call_shape.hpp"
#include "runtime/raise.hpp"
#include "runtime/result_room.hpp"
#include "runtime/small_attempts.hpp"
#include "runtime/step_clock.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic::runtime {

void Collectives::check_on_host(const char* call, const char* which,
                                const ConstTensorView& tensor) const {
  const Status status = devices_.check_host(tensor);
  if (!status.ok()) raise(status.within(std::string(call) + ", " + which));
}

Collectives::Places Collectives::place(const char* call, const ConstTensorView& input,
                                       const TensorView& output, CudaStream stream) {
  check(input, call, "input");
  check(output, call, "output");
  if (!device::on_device(input) && !device::on_device(output)) {
    check_no_stream(stream);
    check_on_host(call, "input", input);
    check_on_host(call, "output", output);
    return {input, output};
  }
  (void)runner_.members();
  runner_.flush();
  return {input, output,
          value_or_throw(devices_.stage(call, {&input, 1}, {&output, 1}, stream, runner_.fetch()))};
}

Collectives::Places Collectives::fetch(const char* call, const ConstTensorView& input,
                                       const TensorView& output, CudaStream stream) {
  Places places = place(call, input, output, stream);
  wait_for(places, /*reads=*/true);
  return places;
}

/// Waits for the device. This wait does not count as communication: it is mostly for the device's
/// computation.
void Collectives::wait_for(const Places& places, bool reads) {
  if (!places.staged) return;
  raise_if(reads ? places.staged->read() : places.staged->wait_for_stream());
}

/// Runs the operation, on tensors in place if the backend takes them there.
Result<Contributors> Collectives::run(const Places& places, bool reads, const MakeOperation& make,
                                      const Accepts& accepts) {
  if (!places.staged || places.staged->when() == device::Fetch::kAtOnce) {
    return runner_.run(*make());
  }
  coordinator::DeviceOperation operation(
      {{places.staged}}, [&make](const auto& /*parts*/) { return make(); }, reads, accepts);
  Result<Contributors> contributors = runner_.run(operation);
  const std::optional<Status>& back = places.staged->back();
  if (back && !back->ok()) return runner_.leave_without_result(*back);
  return contributors;
}

Result<Contributors> Collectives::run(const Places& places, bool reads, const MakeOperation& make,
                                      const Accepts& accepts,
                                      const std::optional<coordinator::SmallAttempt>& small) {
  if (places.staged || !small) return run(places, reads, make, accepts);
  return runner_.run(*small, make);
}

void Collectives::bring_back(const Places& places, std::size_t bytes) {
  if (!places.staged) return;
  const Blocked blocked;
  Status back = places.staged->send_back(bytes);
  if (back.ok()) back = places.staged->wait_until_back();
  if (!back.ok()) raise_if(runner_.leave_without_result(back));
}

Contributors Collectives::broadcast(const TensorView& data, coordinator::Root root,
                                    CudaStream stream) {
  const Places places = place("broadcast", data, data, stream);
  for (;;) {
    if (auto done = try_broadcast(places, root, data.bytes())) return *std::move(done);
  }
}

/// Tries the broadcast once. Nothing if a root named by its rank left before the operation began:
/// the rank means another worker now.
std::optional<Contributors> Collectives::try_broadcast(const Places& places, coordinator::Root root,
                                                       std::size_t bytes) {
  const auto members = runner_.members();
  const auto* const worker = std::get_if<WorkerId>(&root);
  const int rank = worker != nullptr ? members->rank_of(*worker) : std::get<int>(root);
  if (worker == nullptr && (rank < 0 || rank >= members->size())) {
    refuse_on_all(no_such_root("broadcast", Root(rank), *members));
  }
  const bool is_root = rank == members->rank;
  if (runner_.ranks_are_of_this_moment() && rank >= 0) root = named(Root(rank), *members);
  wait_for(places, is_root);
  const coordinator::CallRoot at(root, *members);
  const TensorView& data = places.output();
  const auto make = [&] { return std::make_unique<coordinator::BroadcastOperation>(data, at); };
  const auto accepts = [&](const auto&, const auto&) { return !is_root; };
  Result<Contributors> contributors = run(places, is_root, std::cref(make), std::cref(accepts),
                                          small_broadcast(data, at, *members));
  if (contributors.status().code() == Code::kAborted) return std::nullopt;
  raise_if(contributors.status());
  if (!is_root) bring_back(places, bytes);
  return std::move(contributors).value();
}

Contributors Collectives::allgather(const ConstTensorView& block, const TakeGathered& take,
                                    CudaStream stream, coordinator::RowShape row) {
  const Places places = fetch("allgather", block, {}, stream);
  const TakeGathered guarded = [&take](std::span<const std::byte> values,
                                       std::vector<std::size_t> counts) {
    const InCallback callback("the function given to allgather");
    take(values, std::move(counts));
  };
  return runtime::value_or_throw(run(places, /*reads=*/true,
                                     [&] {
                                       return std::make_unique<coordinator::AllgatherOperation>(
                                           places.input(), guarded, row);
                                     },
                                     {}));
}

GatheredBlocks Collectives::allgather(const ConstTensorView& block, const TensorView& out,
                                      CudaStream stream, coordinator::RowShape row) {
  check_same_type("allgather", block, out);
  const Places places = fetch("allgather", block, out, stream);
  GatheredBlocks blocks;
  const auto note = [&](std::vector<std::size_t> counts) {
    blocks.counts = std::move(counts);
    blocks.count = std::accumulate(blocks.counts.begin(), blocks.counts.end(), std::size_t{0});
  };
  const auto deliver = [&](std::span<const std::byte> values, std::vector<std::size_t> counts) {
    put(values, places.output());
    note(std::move(counts));
  };
  const auto make = [&] {
    return std::make_unique<coordinator::AllgatherOperation>(
        places.input(), deliver, row, room_apart(places.input(), places.output()));
  };
  const auto accepts = [&](const auto&, const collectives::Payload& payload) {
    const auto counts = payload.counts();
    note({counts.begin(), counts.end()});
    return blocks.count <= out.count;
  };
  const TakeBlocks take = std::cref(deliver);
  blocks.contributors =
      value_or_throw(run(places, /*reads=*/true, std::cref(make), std::cref(accepts),
                         small_allgather(places.input(), coordinator::hash_of_row(row), take)));
  if (blocks.count > out.count) {
    refuse_room("allgather", gathered_size(blocks), out.count);
  }
  bring_back(places, blocks.count * size_of(out.dtype));
  return blocks;
}

Contributors Collectives::reduce_scatter(const ConstTensorView& data, ReduceOp op,
                                         const TakeScattered& take, CudaStream stream) {
  const Places places = fetch("reduce_scatter", data, {}, stream);
  const TakeScattered guarded = [&take](std::span<const std::byte> values, std::size_t offset) {
    const InCallback callback("the function given to reduce_scatter");
    take(values, offset);
  };
  return runtime::value_or_throw(run(places, /*reads=*/true,
                                     [&] {
                                       return std::make_unique<coordinator::ReduceScatterOperation>(
                                           places.input(), op, guarded);
                                     },
                                     {}));
}

ScatteredPart Collectives::reduce_scatter(const ConstTensorView& data, const TensorView& out,
                                          ReduceOp op, CudaStream stream) {
  check_same_type("reduce_scatter", data, out);
  TensorView room = out;  // more is never needed
  room.count = std::min(out.count, data.count);
  const Places places = fetch("reduce_scatter", data, room, stream);
  ScatteredPart part;
  const auto note = [&](std::size_t count, std::size_t offset) {
    part.count = count;
    part.offset = offset;
  };
  // The room for the largest part: members with the same room have the same outcome.
  const auto largest = [&](std::size_t members) { return (data.count + members - 1) / members; };
  const auto deliver = [&](std::span<const std::byte> values, std::size_t offset) {
    put(values, places.output());
    note(values.size() / size_of(data.dtype), offset);
  };
  const auto make = [&] {
    return std::make_unique<coordinator::ReduceScatterOperation>(
        places.input(), op, deliver, room_apart(places.input(), places.output()));
  };
  const auto accepts = [&](const Members& members, const collectives::Payload& payload) {
    const auto counts = payload.counts();
    const auto mine = counts.begin() + members.rank;
    note(static_cast<std::size_t>(*mine), std::accumulate(counts.begin(), mine, std::size_t{0}));
    return largest(counts.size()) <= out.count;
  };
  const TakePart take = std::cref(deliver);
  part.contributors =
      value_or_throw(run(places, /*reads=*/true, std::cref(make), std::cref(accepts),
                         small_reduce_scatter(places.input(), op, take)));
  const std::size_t members = part.contributors.size();
  if (largest(members) > out.count) {
    refuse_room("reduce_scatter",
                "the largest part of " + std::to_string(data.count) + " elements for " +
                    std::to_string(members) + " members has " + std::to_string(largest(members)),
                out.count);
  }
  bring_back(places, part.count * size_of(out.dtype));
  return part;
}

}  // namespace elastic::runtime
