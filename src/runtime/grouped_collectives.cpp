#include "runtime/grouped_collectives.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/dtype_names.hpp"
#include "base/tensor_bytes.hpp"
#include "collectives/device/placement.hpp"
#include "elastic/error.hpp"
#include "runtime/raise.hpp"
#include "runtime/result_room.hpp"
#include "runtime/step_clock.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic::runtime {

namespace {

using coordinator::GroupedAllgatherOperation;
using coordinator::GroupedReduceScatterOperation;
using coordinator::Members;

constexpr const char* kGroupedReduceScatter = "grouped_reduce_scatter";
constexpr const char* kGroupedAllgather = "grouped_allgather";

/// "grouped_allgather, tensor 2"
std::string tensor_of(const char* call, std::size_t tensor) {
  return std::string(call) + ", tensor " + std::to_string(tensor);
}

[[noreturn]] void refuse_group(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, what);
}

void check_grouped(const char* call, std::span<const ConstTensorView> inputs,
                   std::span<const TensorView> outputs) {
  if (inputs.size() != outputs.size()) {
    refuse_group(std::string(call) + ": the number of inputs is " + std::to_string(inputs.size()) +
                 ", that of outputs " + std::to_string(outputs.size()) +
                 "; give one output for each input");
  }
  std::size_t total = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check(inputs[i], tensor_of(call, i).c_str(), "input");
    check(outputs[i], tensor_of(call, i).c_str(), "output");
    check_same_type(tensor_of(call, i).c_str(), inputs[i], outputs[i]);
    total += inputs[i].bytes();
    if (total <= kMostAddressableBytes) continue;
    refuse_group(
        std::string(call) + ": the inputs of tensors 0 to " + std::to_string(i) +
        " have more bytes together than any memory has; the count of one of them is wrong");
  }
  check_group(outputs, (std::string(call) + ", outputs").c_str());
}

void check_one_dtype(std::span<const ConstTensorView> inputs) {
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].dtype == inputs.front().dtype) continue;
    refuse_group(tensor_of(kGroupedReduceScatter, i) + " is " + dtype_name(inputs[i].dtype) +
                 ", and tensor 0 " + dtype_name(inputs.front().dtype) +
                 ": make one call for each dtype");
  }
}

/// This worker's parts, for members of the view that has computed them.
std::vector<ScatteredPart> parts_in(const Members& members, const plan::GroupSlots& slots) {
  const auto rank = static_cast<std::size_t>(members.rank);
  std::vector<ScatteredPart> parts;
  for (std::size_t i = 0; i < slots.tensors(); ++i) {
    parts.push_back({slots.count(i, rank), slots.begin(i, rank), {}});
  }
  return parts;
}

/// The tensors of blocks with these counts.
std::vector<GatheredBlocks> blocks_with(GroupedAllgatherOperation::Counts counts) {
  std::vector<GatheredBlocks> all;
  for (std::vector<std::size_t>& each : counts) {
    const std::size_t sum = std::accumulate(each.begin(), each.end(), std::size_t{0});
    all.push_back({sum, std::move(each), {}});
  }
  return all;
}

/// Counts of a result on a device, which has those of rank 0 first.
GroupedAllgatherOperation::Counts counts_in(const collectives::Payload& payload,
                                            std::size_t tensors) {
  const std::span<const std::uint64_t> flat = payload.counts();
  GroupedAllgatherOperation::Counts counts(tensors);
  for (std::size_t i = 0; i < flat.size(); ++i) {
    counts[i % tensors].push_back(static_cast<std::size_t>(flat[i]));
  }
  return counts;
}

/// The first tensor whose result, of `needed` elements, has no room; none: all have.
template <typename Needed>
std::optional<std::size_t> first_without_room(std::span<const TensorView> outputs,
                                              const Needed& needed) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (needed(i) > outputs[i].count) return i;
  }
  return std::nullopt;
}

template <typename Result>
void set_contributors(Result& result, Contributors contributors) {
  for (auto& tensor : result.tensors) tensor.contributors = contributors;
  result.contributors = std::move(contributors);
}

template <typename Result>
std::vector<std::size_t> result_bytes(const Result& result, std::span<const TensorView> outputs) {
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    bytes.push_back(result.tensors[i].count * size_of(outputs[i].dtype));
  }
  return bytes;
}

}  // namespace

GroupedCollectives::Places GroupedCollectives::fetch(const char* call,
                                                     std::span<const ConstTensorView> inputs,
                                                     std::span<const TensorView> outputs,
                                                     CudaStream stream) {
  Places places{{{inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}}};
  const auto on_device = [](const ConstTensorView& tensor) { return device::on_device(tensor); };
  if (std::ranges::none_of(inputs, on_device) && std::ranges::none_of(outputs, on_device)) {
    check_no_stream(stream);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (const ConstTensorView& tensor : {inputs[i], ConstTensorView(outputs[i])}) {
        const Status status = devices_.check_host(tensor);
        if (!status.ok()) raise(status.within(tensor_of(call, i)));
      }
    }
    return places;
  }
  (void)runner_.members();
  runner_.flush();
  places.staged = value_or_throw(devices_.stage(call, inputs, outputs, stream, runner_.fetch()));
  // This wait does not count as communication: it is mostly for the device's computation.
  raise_if(places.staged->read());
  return places;
}

/// Runs the operation, on tensors in place if the backend takes them there.
Contributors GroupedCollectives::run(const Places& places, const Make& make,
                                     const Accepts& accepts) {
  if (!places.staged || places.staged->when() == device::Fetch::kAtOnce) {
    return value_or_throw(runner_.run(*make()));
  }
  coordinator::DeviceOperation operation(
      {{places.staged}}, [&make](const auto& /*parts*/) { return make(); }, /*reads=*/true,
      accepts);
  Result<Contributors> contributors = runner_.run(operation);
  const std::optional<Status>& back = places.staged->back();
  if (back && !back->ok()) raise_if(runner_.leave_without_result(*back));
  return value_or_throw(std::move(contributors));
}

void GroupedCollectives::bring_back(const Places& places, const std::vector<std::size_t>& bytes) {
  if (!places.staged) return;
  const Blocked blocked;
  Status back = places.staged->send_back(bytes);
  if (back.ok()) back = places.staged->wait_until_back();
  if (!back.ok()) raise_if(runner_.leave_without_result(back));
}

ScatteredTensors GroupedCollectives::reduce_scatter(std::span<const ConstTensorView> inputs,
                                                    std::span<const TensorView> outputs,
                                                    ReduceOp op, CudaStream stream) {
  check_grouped(kGroupedReduceScatter, inputs, outputs);
  check_one_dtype(inputs);
  const std::vector<TensorView> dtypes(outputs.begin(), outputs.end());
  check(op, dtypes, kGroupedReduceScatter);
  check_elementwise(op, kGroupedReduceScatter);
  std::vector<TensorView> rooms(outputs.begin(), outputs.end());  // more is never needed
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    rooms[i].count = std::min(rooms[i].count, inputs[i].count);
  }
  const Places places = fetch(kGroupedReduceScatter, inputs, rooms, stream);
  ScatteredTensors result;
  std::optional<std::size_t> lacking;
  // The room for the largest part: members with the same room have the same outcome.
  const auto accepts = [&](const Members& members, const plan::GroupSlots& slots) {
    result.tensors = parts_in(members, slots);
    lacking = first_without_room(outputs, [&](std::size_t i) { return slots.largest(i); });
    return !lacking;
  };
  const auto make = [&] {
    return std::make_unique<GroupedReduceScatterOperation>(places.tensors(), op, accepts);
  };
  const auto accepts_on_device = [&](const Members& members, const auto& /*payload*/) {
    const auto ranks = static_cast<std::size_t>(members.size());
    return accepts(members, GroupedReduceScatterOperation::slots_for(places.given.inputs, ranks));
  };
  set_contributors(result, run(places, make, accepts_on_device));
  if (lacking) {
    const std::size_t members = result.contributors.size();
    const std::size_t count = inputs[*lacking].count;
    refuse_room(tensor_of(kGroupedReduceScatter, *lacking).c_str(),
                "the largest part of " + std::to_string(count) + " elements for " +
                    std::to_string(members) + " members has " +
                    std::to_string((count + members - 1) / members),
                outputs[*lacking].count);
  }
  bring_back(places, result_bytes(result, outputs));
  return result;
}

GatheredTensors GroupedCollectives::allgather(std::span<const ConstTensorView> blocks,
                                              std::span<const TensorView> outputs,
                                              CudaStream stream) {
  check_grouped(kGroupedAllgather, blocks, outputs);
  const Places places = fetch(kGroupedAllgather, blocks, outputs, stream);
  GatheredTensors result;
  std::optional<std::size_t> lacking;
  const auto accepts = [&](GroupedAllgatherOperation::Counts counts) {
    result.tensors = blocks_with(std::move(counts));
    lacking = first_without_room(outputs, [&](std::size_t i) { return result.tensors[i].count; });
    return !lacking;
  };
  const auto make = [&] {
    return std::make_unique<GroupedAllgatherOperation>(places.tensors(), accepts);
  };
  const auto accepts_on_device = [&](const Members& /*members*/,
                                     const collectives::Payload& payload) {
    return accepts(counts_in(payload, outputs.size()));
  };
  set_contributors(result, run(places, make, accepts_on_device));
  if (lacking) {
    refuse_room(tensor_of(kGroupedAllgather, *lacking).c_str(),
                gathered_size(result.tensors[*lacking]), outputs[*lacking].count);
  }
  bring_back(places, result_bytes(result, outputs));
  return result;
}

}  // namespace elastic::runtime
