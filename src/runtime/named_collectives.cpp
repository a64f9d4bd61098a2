// The asynchronous collectives with a name that are no allreduces: the coordinator's thread runs
// them when all ranks have submitted the name.
#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/gathered_calls.hpp"
#include "base/in_callback.hpp"
#include "coordinator/block_operations.hpp"
#include "coordinator/reduction_operations.hpp"
#include "elastic/async_collectives.hpp"
#include "runtime/call_scope.hpp"
#include "runtime/named_places.hpp"
#include "runtime/owned_blocks.hpp"
#include "runtime/raise.hpp"
#include "runtime/result_room.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic {

namespace {

using coordinator::CallRoot;
using coordinator::Coordinator;
using coordinator::Members;
using coordinator::Operation;
using coordinator::RequestKind;
using coordinator::TensorRequest;
using runtime::NamedPlaces;

using Row = std::vector<std::size_t>;

TensorRequest request(std::string_view name, RequestKind kind, DType dtype, std::size_t count,
                      ReduceOp op = ReduceOp::kSum) {
  return {std::string(name), kind, op, {{dtype, count}}};
}

/// The root of an attempt in the view of `members`.
CallRoot renewed(const Root& root, const Members& members) {
  if (root.worker()) return {*root.worker(), members, true};
  return {root.rank(), members, true};
}

/// The operation of `make`, or its refusal on all members where the root is no rank.
template <typename Make>
std::unique_ptr<Operation> rooted(const char* call, const Root& root, const Members& members,
                                  const Make& make) {
  const bool there = root.worker() || (root.rank() >= 0 && root.rank() < members.size());
  if (there) return make(renewed(root, members));
  return std::make_unique<coordinator::MismatchOperation>(
      runtime::no_such_root(call, root, members));
}

template <typename Take>
auto guarded(Take take, const char* what) {
  return [take = std::move(take), what](auto&&... result) {
    const InCallback callback(what);
    take(std::forward<decltype(result)>(result)...);
  };
}

/// Takes gathered blocks into a tensor, and notes what they were.
auto into(const std::shared_ptr<GatheredBlocks>& result, const TensorView& out) {
  return [result, out](std::span<const std::byte> values, std::vector<std::size_t> counts) {
    runtime::put(values, out);
    result->count = values.size() / size_of(out.dtype);
    result->counts = std::move(counts);
  };
}

/// Takes a scattered block into a tensor, and notes which it was.
auto into(const std::shared_ptr<ScatteredPart>& result, const TensorView& out) {
  return [result, out](std::span<const std::byte> values, std::size_t offset) {
    runtime::put(values, out);
    result->count = values.size() / size_of(out.dtype);
    result->offset = offset;
  };
}

/// Notes a result on a device, which has these blocks.
void note(GatheredBlocks& result, std::span<const std::uint64_t> counts) {
  result.counts.assign(counts.begin(), counts.end());
  result.count = std::accumulate(result.counts.begin(), result.counts.end(), std::size_t{0});
}
void note(ScatteredPart& result, int rank, std::span<const std::uint64_t> counts) {
  const auto mine = counts.begin() + rank;
  result.count = static_cast<std::size_t>(*mine);
  result.offset = std::accumulate(counts.begin(), mine, std::size_t{0});
}

/// The error of gathered blocks that have no room in a tensor.
std::function<Status()> fits(const char* call, const std::shared_ptr<GatheredBlocks>& result,
                             std::size_t room) {
  return [call, result, room]() -> Status {
    if (result->count <= room) return {};
    return Status(Code::kInvalidArgument,
                  runtime::lacks_room(call, runtime::gathered_size(*result), room));
  };
}

coordinator::AddressedBlocks addressed(const runtime::OwnedBlocks& owned) {
  const BlocksView blocks = owned.view();
  return {blocks.data, {blocks.counts.begin(), blocks.counts.end()}, blocks.to};
}

std::unique_ptr<Operation> alltoall_of(const runtime::OwnedBlocks& owned,
                                       coordinator::AlltoallOperation::Take take) {
  const BlocksView blocks = owned.view();
  return std::make_unique<coordinator::AlltoallOperation>(addressed(owned), !blocks.counts.empty(),
                                                          blocks.row, std::move(take));
}

/// The kind of an allgather of such rows.
coordinator::RequestKind kind_of_gather(std::span<const std::size_t> row) {
  return std::ranges::equal(row, kSparseRowsCall.row) ? coordinator::kSparseRequest
                                                      : coordinator::kAllgatherRequest;
}

}  // namespace

Work AsyncCollectives::allreduce_async(std::string_view name, ConstTensorView in, TensorView out,
                                       ReduceOp op) {
  runtime::check_reduction(in, out, op, "allreduce_async");
  return scope()->submit("allreduce_async", name, in, out, op);
}

Work AsyncCollectives::broadcast_async(std::string_view name, TensorView data, Root root,
                                       CudaStream stream) {
  runtime::check(data, "broadcast_async");
  return scope()->submit(
      "broadcast_async", name, data, data, stream,
      [&](const NamedPlaces& places) -> coordinator::NamedCall {
        const auto is_root = std::make_shared<bool>(false);  // in the latest attempt
        const auto make = [places, root, is_root](const Members& members) {
          return rooted("broadcast", root, members, [&](const CallRoot& at) {
            *is_root = at.is_this_worker();
            return places.operation(
                [places, at] {
                  return std::make_unique<coordinator::BroadcastOperation>(places.output(), at);
                },
                *is_root, [is_root](const auto&, const auto&) { return !*is_root; });
          });
        };
        const auto conclude = [places, is_root, bytes = data.bytes()] {
          return *is_root ? Status() : places.bring_back(bytes);
        };
        return {request(name, coordinator::kBroadcastRequest, data.dtype, data.count), make,
                conclude};
      });
}

Work AsyncCollectives::allgather_async(std::string_view name, ConstTensorView block,
                                       TakeGathered take, std::span<const std::size_t> row) {
  runtime::check(block, "allgather_async");
  return scope()->submit(
      "allgather_async", block,
      {request(name, kind_of_gather(row), block.dtype, 0),
       [block, take = guarded(std::move(take), "the function given to allgather_async"),
        row = Row(row.begin(), row.end())](const Members& /*members*/) {
         return std::make_unique<coordinator::AllgatherOperation>(block, take, row);
       }});
}

Pending<GatheredBlocks> AsyncCollectives::allgather_async(std::string_view name,
                                                          ConstTensorView block, TensorView out,
                                                          CudaStream stream) {
  runtime::check(block, "allgather_async", "input");
  runtime::check(out, "allgather_async", "output");
  runtime::check_same_type("allgather_async", block, out);
  auto result = std::make_shared<GatheredBlocks>();
  const auto make_call = [&](const NamedPlaces& places) -> coordinator::NamedCall {
    const auto make = [places, result](const Members& /*members*/) {
      return places.operation(
          [places, result] {
            return std::make_unique<coordinator::AllgatherOperation>(
                places.input(), into(result, places.output()), Row());
          },
          /*reads=*/true,
          [places, result](const auto&, const collectives::Payload& payload) {
            note(*result, payload.counts());
            return result->count <= places.output().count;
          });
    };
    const auto has_room = fits("allgather_async", result, out.count);
    const auto conclude = [places, result, has_room, element = size_of(out.dtype)] {
      const Status status = has_room();
      return status.ok() ? places.bring_back(result->count * element) : status;
    };
    return {request(name, coordinator::kAllgatherRequest, block.dtype, 0), make, conclude};
  };
  Work work = scope()->submit("allgather_async", name, block, out, stream, make_call);
  return {std::move(work), std::move(result)};
}

Work AsyncCollectives::reduce_scatter_async(std::string_view name, ConstTensorView data,
                                            ReduceOp op, TakeScattered take) {
  runtime::check(data, "reduce_scatter_async");
  runtime::check(op, data.dtype, "reduce_scatter_async");
  runtime::check_elementwise(op, "reduce_scatter_async");
  return scope()->submit(
      "reduce_scatter_async", data,
      {request(name, coordinator::kReduceScatterRequest, data.dtype, data.count, op),
       [data, op, take = guarded(std::move(take), "the function given to reduce_scatter_async")](
           const Members& /*members*/) {
         return std::make_unique<coordinator::ReduceScatterOperation>(data, op, take);
       }});
}

Pending<ScatteredPart> AsyncCollectives::reduce_scatter_async(std::string_view name,
                                                              ConstTensorView data, TensorView out,
                                                              ReduceOp op, CudaStream stream) {
  runtime::check(data, "reduce_scatter_async", "input");
  runtime::check(out, "reduce_scatter_async", "output");
  runtime::check_same_type("reduce_scatter_async", data, out);
  runtime::check(op, data.dtype, "reduce_scatter_async");
  runtime::check_elementwise(op, "reduce_scatter_async");
  auto result = std::make_shared<ScatteredPart>();
  const auto make_call = [&](const NamedPlaces& places) -> coordinator::NamedCall {
    // The room for the largest part: members with the same room have the same outcome.
    const auto largest = std::make_shared<std::size_t>(0);
    const std::size_t room = out.count;
    const auto make = [places, data, op, result, largest, room](const Members& members) {
      const auto parts = static_cast<std::size_t>(members.size());
      *largest = (data.count + parts - 1) / parts;
      return places.operation(
          [places, op, result] {
            return std::make_unique<coordinator::ReduceScatterOperation>(
                places.input(), op, into(result, places.output()));
          },
          /*reads=*/true,
          [result, largest, room](const Members& those, const collectives::Payload& payload) {
            note(*result, those.rank, payload.counts());
            return *largest <= room;
          });
    };
    const auto conclude = [places, result, largest, data, room]() -> Status {
      if (*largest <= room) return places.bring_back(result->count * size_of(data.dtype));
      return Status(Code::kInvalidArgument,
                    runtime::lacks_room("reduce_scatter_async",
                                        "the largest part of " + std::to_string(data.count) +
                                            " elements has " + std::to_string(*largest),
                                        room));
    };
    return {request(name, coordinator::kReduceScatterRequest, data.dtype, data.count, op), make,
            conclude};
  };
  TensorView room = out;  // more is never needed
  room.count = std::min(out.count, data.count);
  Work work = scope()->submit("reduce_scatter_async", name, data, room, stream, make_call);
  return {std::move(work), std::move(result)};
}

Work AsyncCollectives::alltoall_async(std::string_view name, const BlocksView& blocks,
                                      TakeGathered take) {
  runtime::check(blocks.data, "alltoall_async");
  return scope()->submit("alltoall_async", blocks.data,
                         {request(name, coordinator::kAlltoallRequest, blocks.data.dtype, 0),
                          [owned = scope()->own(blocks),
                           take = guarded(std::move(take), "the function given to alltoall_async")](
                              const Members& /*members*/) { return alltoall_of(owned, take); }});
}

Pending<GatheredBlocks> AsyncCollectives::alltoall_async(std::string_view name,
                                                         const BlocksView& blocks, TensorView out) {
  runtime::check(blocks.data, "alltoall_async", "input");
  runtime::check(out, "alltoall_async", "output");
  runtime::check_same_type("alltoall_async", blocks.data, out);
  auto result = std::make_shared<GatheredBlocks>();
  Work work = scope()->submit("alltoall_async", blocks.data,
                              {request(name, coordinator::kAlltoallRequest, blocks.data.dtype, 0),
                               [owned = scope()->own(blocks), take = into(result, out)](
                                   const Members& /*members*/) { return alltoall_of(owned, take); },
                               fits("alltoall_async", result, out.count)});
  return {std::move(work), std::move(result)};
}

Work AsyncCollectives::gather_async(std::string_view name, ConstTensorView block, Root root,
                                    TakeGathered take, std::span<const std::size_t> row) {
  runtime::check(block, "gather_async");
  return scope()->submit(
      "gather_async", block,
      {request(name, coordinator::kGatherRequest, block.dtype, 0),
       [block, root, take = guarded(std::move(take), "the function given to gather_async"),
        row = Row(row.begin(), row.end())](const Members& members) {
         return rooted("gather", root, members, [&](CallRoot at) {
           return std::make_unique<coordinator::GatherOperation>(block, std::move(at), row, take);
         });
       }});
}

Pending<GatheredBlocks> AsyncCollectives::gather_async(std::string_view name, ConstTensorView block,
                                                       TensorView out, Root root) {
  runtime::check(block, "gather_async", "input");
  runtime::check(out, "gather_async", "output");
  runtime::check_same_type("gather_async", block, out);
  auto result = std::make_shared<GatheredBlocks>();
  Work work = scope()->submit("gather_async", block,
                              {request(name, coordinator::kGatherRequest, block.dtype, 0),
                               [block, root, take = into(result, out)](const Members& members) {
                                 return rooted("gather", root, members, [&](CallRoot at) {
                                   return std::make_unique<coordinator::GatherOperation>(
                                       block, std::move(at), Row(), take);
                                 });
                               },
                               fits("gather_async", result, out.count)});
  return {std::move(work), std::move(result)};
}

Work AsyncCollectives::scatter_async(std::string_view name, const BlocksView& blocks, Root root,
                                     TakeScattered take) {
  runtime::check(blocks.data, "scatter_async");
  return scope()->submit("scatter_async", blocks.data,
                         {request(name, coordinator::kScatterRequest, blocks.data.dtype, 0),
                          [owned = scope()->own(blocks), root,
                           take = guarded(std::move(take), "the function given to scatter_async")](
                              const Members& members) {
                            return rooted("scatter", root, members, [&](CallRoot at) {
                              return std::make_unique<coordinator::ScatterOperation>(
                                  addressed(owned), std::move(at), take);
                            });
                          }});
}

Pending<ScatteredPart> AsyncCollectives::scatter_async(std::string_view name,
                                                       const BlocksView& blocks, TensorView out,
                                                       Root root) {
  runtime::check(blocks.data, "scatter_async", "input");
  runtime::check(out, "scatter_async", "output");
  runtime::check_same_type("scatter_async", blocks.data, out);
  auto result = std::make_shared<ScatteredPart>();
  const auto conclude = [result, room = out.count]() -> Status {
    if (result->count <= room) return {};
    return Status(
        Code::kInvalidArgument,
        runtime::lacks_room("scatter_async",
                            "the block has " + std::to_string(result->count) + " elements", room));
  };
  Work work = scope()->submit(
      "scatter_async", blocks.data,
      {request(name, coordinator::kScatterRequest, blocks.data.dtype, 0),
       [owned = scope()->own(blocks), root, take = into(result, out)](const Members& members) {
         return rooted("scatter", root, members, [&](CallRoot at) {
           return std::make_unique<coordinator::ScatterOperation>(addressed(owned), std::move(at),
                                                                  take);
         });
       },
       conclude});
  return {std::move(work), std::move(result)};
}

Work AsyncCollectives::reduce_async(std::string_view name, ConstTensorView in, TensorView out,
                                    Root root, ReduceOp op) {
  runtime::check_elementwise(op, "reduce_async");
  if (out.count > 0) {
    runtime::check_reduction(in, out, op, "reduce_async");
  } else {  // of a member that is not the root
    runtime::check(in, "reduce_async", "input");
    runtime::check(op, in.dtype, "reduce_async");
  }
  return scope()->submit("reduce_async", in,
                         {request(name, coordinator::kReduceRequest, in.dtype, in.count, op),
                          [in, out, root, op](const Members& members) {
                            return rooted("reduce", root, members, [&](CallRoot at) {
                              return std::make_unique<coordinator::ReduceOperation>(in, out, op,
                                                                                    std::move(at));
                            });
                          }});
}

Work AsyncCollectives::scan_async(std::string_view name, ConstTensorView in, TensorView out,
                                  ReduceOp op) {
  runtime::check_reduction(in, out, op, "scan_async");
  runtime::check_elementwise(op, "scan_async");
  return scope()->submit("scan_async", in,
                         {request(name, coordinator::kScanRequest, in.dtype, in.count, op),
                          [in, out, op](const Members& /*members*/) {
                            return std::make_unique<coordinator::ScanOperation>(
                                in, out, op,
                                /*exclusive=*/false);
                          }});
}

Work AsyncCollectives::exscan_async(std::string_view name, ConstTensorView in, TensorView out,
                                    ReduceOp op) {
  runtime::check_reduction(in, out, op, "exscan_async");
  runtime::check_elementwise(op, "exscan_async");
  return scope()->submit("exscan_async", in,
                         {request(name, coordinator::kExscanRequest, in.dtype, in.count, op),
                          [in, out, op](const Members& /*members*/) {
                            return std::make_unique<coordinator::ScanOperation>(in, out, op,
                                                                                /*exclusive=*/true);
                          }});
}

Work AsyncCollectives::barrier_async(std::string_view name) {
  return scope()->submit(
      "barrier_async", {},
      {request(name, coordinator::kBarrierRequest, DType::kU8, 0), [](const Members& /*members*/) {
         return std::make_unique<coordinator::BarrierOperation>();
       }});
}

}  // namespace elastic
