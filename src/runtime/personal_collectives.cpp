// The blocking collectives whose result differs by rank: alltoall, gather, scatter, reduce, scan.
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/in_callback.hpp"
#include "coordinator/block_operations.hpp"
#include "coordinator/call_shape.hpp"
#include "coordinator/reduction_operations.hpp"
#include "runtime/collectives.hpp"
#include "runtime/raise.hpp"
#include "runtime/result_room.hpp"
#include "runtime/small_attempts.hpp"
#include "runtime/tensor_check.hpp"

namespace elastic::runtime {

namespace {

using coordinator::CallRoot;
using coordinator::Members;

/// `take` as a function of the program: it may call no collective.
template <typename Take>
auto guarded(const Take& take, const char* what) {
  return [&take, what](auto&&... result) {
    const InCallback callback(what);
    take(std::forward<decltype(result)>(result)...);
  };
}

GatheredBlocks blocks_of(std::vector<std::size_t> counts) {
  GatheredBlocks blocks;
  blocks.count = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  blocks.counts = std::move(counts);
  return blocks;
}

void check_room(const char* call, const GatheredBlocks& blocks, const TensorView& out) {
  if (blocks.count <= out.count) return;
  refuse_room(call, gathered_size(blocks), out.count);
}

}  // namespace

/// Runs a call with a root until it has begun: a root that was named by its rank may leave before.
Contributors Collectives::run_rooted(const char* call, const Places& places, const Root& root,
                                     const MakeRooted& make, const TryRooted& try_small) {
  for (;;) {
    const auto members = runner_.members();
    if (!root.worker() && (root.rank() < 0 || root.rank() >= members->size())) {
      refuse_on_all(no_such_root(call, root, *members));
    }
    const CallRoot at(named(root, *members), *members);
    const auto make_at = [&] { return make(at); };
    std::optional<coordinator::SmallAttempt> small;
    if (try_small) small = try_small(at, *members);
    Result<Contributors> done = run(places, /*reads=*/true, std::cref(make_at), {}, small);
    if (done.status().code() != Code::kAborted) return value_or_throw(std::move(done));
  }
}

/// The root as it is named through all attempts at a call: `root` is a worker or one of the ranks
/// of `members`.
coordinator::Root Collectives::named(const Root& root, const Members& members) const {
  if (root.worker()) return *root.worker();
  if (!runner_.ranks_are_of_this_moment()) return root.rank();
  return (*members.ids)[static_cast<std::size_t>(root.rank())];
}

/// Ends the call that this worker cannot make in an error on all members.
void Collectives::refuse_on_all(std::string why) {
  coordinator::MismatchOperation refusal(std::move(why));
  raise(runner_.run(refusal).status());
}

coordinator::AddressedBlocks Collectives::addressed(const BlocksView& blocks,
                                                    const ConstTensorView& data) const {
  return {data,
          {blocks.counts.begin(), blocks.counts.end()},
          blocks.to.size() > 0 ? blocks.to : runner_.seen()};
}

Contributors Collectives::alltoall(const BlocksView& blocks, const TakeGathered& take,
                                   CudaStream stream) {
  const Places places = fetch("alltoall", blocks.data, {}, stream);
  return run_alltoall(places, blocks, guarded(take, "the function given to alltoall"), {},
                      /*may_be_small=*/false);
}

GatheredBlocks Collectives::alltoall(const BlocksView& blocks, const TensorView& out,
                                     CudaStream stream) {
  check_same_type("alltoall", blocks.data, out);
  const Places places = fetch("alltoall", blocks.data, out, stream);
  GatheredBlocks result;
  const auto deliver = [&](std::span<const std::byte> values, std::vector<std::size_t> counts) {
    put(values, places.output());
    result = blocks_of(std::move(counts));
  };
  Contributors contributors =
      run_alltoall(places, blocks, std::cref(deliver), room_apart(places.input(), places.output()),
                   blocks.counts.empty() && blocks.to.size() == 0);
  result.contributors = std::move(contributors);
  check_room("alltoall", result, out);
  bring_back(places, result.count * size_of(out.dtype));
  return result;
}

/// `may_be_small`: the blocks are equal and for all members, and no function of the program takes
/// the result.
Contributors Collectives::run_alltoall(const Places& places, const BlocksView& blocks,
                                       const TakeGathered& take, coordinator::Room room,
                                       bool may_be_small) {
  const auto make = [&] {
    return std::make_unique<coordinator::AlltoallOperation>(
        addressed(blocks, places.input()), !blocks.counts.empty(), blocks.row, take, room);
  };
  std::optional<coordinator::SmallAttempt> small;
  if (may_be_small) {
    small =
        small_alltoall(places.input(), coordinator::hash_of_row(blocks.row), runner_.seen(), take);
  }
  return value_or_throw(run(places, /*reads=*/true, std::cref(make), {}, small));
}

Contributors Collectives::gather(const ConstTensorView& block, const Root& root,
                                 const TakeGathered& take, CudaStream stream,
                                 coordinator::RowShape row) {
  const Places places = fetch("gather", block, {}, stream);
  return run_rooted("gather", places, root, [&](CallRoot at) {
    return std::make_unique<coordinator::GatherOperation>(
        places.input(), std::move(at), row, guarded(take, "the function given to gather"));
  });
}

GatheredBlocks Collectives::gather(const ConstTensorView& block, const TensorView& out,
                                   const Root& root, CudaStream stream, coordinator::RowShape row) {
  check_same_type("gather", block, out);
  const Places places = fetch("gather", block, out, stream);
  GatheredBlocks result;
  const auto deliver = [&](std::span<const std::byte> values, std::vector<std::size_t> counts) {
    put(values, places.output());
    result = blocks_of(std::move(counts));
  };
  const TakeBlocks taken = std::cref(deliver);
  const auto make = [&](CallRoot at) {
    return std::make_unique<coordinator::GatherOperation>(
        places.input(), std::move(at), row, deliver, room_apart(places.input(), places.output()));
  };
  const auto try_small = [&](const CallRoot& at, const Members& members) {
    return small_gather(places.input(), coordinator::hash_of_row(row), at, members, taken);
  };
  Contributors contributors =
      run_rooted("gather", places, root, std::cref(make), std::cref(try_small));
  result.contributors = std::move(contributors);
  check_room("gather", result, out);
  bring_back(places, result.count * size_of(out.dtype));
  return result;
}

Contributors Collectives::scatter(const BlocksView& blocks, const Root& root,
                                  const TakeScattered& take, CudaStream stream) {
  const Places places = fetch("scatter", blocks.data, {}, stream);
  return run_rooted("scatter", places, root, [&](CallRoot at) {
    return std::make_unique<coordinator::ScatterOperation>(
        addressed(blocks, places.input()), std::move(at),
        guarded(take, "the function given to scatter"));
  });
}

ScatteredPart Collectives::scatter(const BlocksView& blocks, const TensorView& out,
                                   const Root& root, CudaStream stream) {
  check_same_type("scatter", blocks.data, out);
  const Places places = fetch("scatter", blocks.data, out, stream);
  ScatteredPart part;
  const auto deliver = [&](std::span<const std::byte> values, std::size_t offset) {
    put(values, places.output());
    part.count = values.size() / size_of(out.dtype);
    part.offset = offset;
  };
  const TakePart taken = std::cref(deliver);
  const auto make = [&](CallRoot at) {
    return std::make_unique<coordinator::ScatterOperation>(
        addressed(blocks, places.input()), std::move(at), deliver,
        room_apart(places.input(), places.output()));
  };
  const bool equal = blocks.counts.empty() && blocks.to.size() == 0;
  const auto try_small = [&](const CallRoot& at, const Members& members) {
    return equal ? small_scatter(places.input(), runner_.seen(), at, members, taken) : std::nullopt;
  };
  Contributors contributors =
      run_rooted("scatter", places, root, std::cref(make), std::cref(try_small));
  part.contributors = std::move(contributors);
  if (part.count > out.count) {
    refuse_room("scatter", "the block has " + std::to_string(part.count) + " elements", out.count);
  }
  bring_back(places, part.count * size_of(out.dtype));
  return part;
}

Contributors Collectives::reduce(const ConstTensorView& in, const TensorView& out, ReduceOp op,
                                 const Root& root, CudaStream stream) {
  const Places places = fetch("reduce", in, out, stream);
  bool is_root = false;
  const auto make = [&](CallRoot at) {
    return std::make_unique<coordinator::ReduceOperation>(
        places.input(), places.output(), op, std::move(at),
        room_apart(places.input(), places.output()));
  };
  const auto try_small = [&](const CallRoot& at, const Members& members) {
    is_root = at.is_this_worker();
    return small_reduce(places.input(), places.output(), op, at, members);
  };
  Contributors contributors =
      run_rooted("reduce", places, root, std::cref(make), std::cref(try_small));
  if (!is_root) return contributors;
  if (out.count < in.count) {
    refuse_room("reduce", "the result has " + std::to_string(in.count) + " elements", out.count);
  }
  bring_back(places, out.bytes());
  return contributors;
}

Contributors Collectives::scan(const char* call, const ConstTensorView& in, const TensorView& out,
                               ReduceOp op, bool exclusive, CudaStream stream) {
  const Places places = fetch(call, in, out, stream);
  Contributors contributors =
      value_or_throw(run(places, /*reads=*/true,
                         [&] {
                           return std::make_unique<coordinator::ScanOperation>(
                               places.input(), places.output(), op, exclusive);
                         },
                         {}));
  bring_back(places, out.bytes());
  return contributors;
}

}  // namespace elastic::runtime
