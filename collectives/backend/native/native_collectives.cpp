// The collectives, each as plans on the links or in shared memory.
#include <algorithm>
#include <cstring>

#include "base/reduce_ops.hpp"
#include "collectives/backend/native/native_backend_class.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/exchange.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives {

namespace {

/// More members that have the state give none of it: they would need links with every joiner.
constexpr std::size_t kMostDonors = 16;

}  // namespace

Status NativeBackend::perform(const Call& call, Payload& payload, const Counts* counts) {
  switch (call.kind) {
    case Kind::kAllreduce:
      return allreduce(call, payload);
    case Kind::kBroadcast:
      return broadcast(call, payload);
    case Kind::kAllgather:
      return allgather(call.sections.front(), payload, counts);
    case Kind::kReduceScatter:
      return reduce_scatter(call, payload);
    case Kind::kBarrier:
      return barrier();
    case Kind::kTransfer:
      return transfer(call, payload);
    case Kind::kMismatch:
      return Status(Code::kMismatch, call.error);
    case Kind::kAlltoall:
      return end_with_own_result(personal_.alltoall(call, payload, counts), payload);
    case Kind::kGather:
      return end_with_own_result(personal_.gather(call, payload, counts), payload);
    case Kind::kScatter:
    case Kind::kReduce:
    case Kind::kScan:
      return one_way(call, payload, counts);
  }
  return Status(Code::kInternal, "no collective has this number");
}

Status NativeBackend::allreduce(const Call& call, Payload& payload) {
  // Without elements there is nothing to reduce, but still no rank may be ahead of the others.
  if (call.sections.empty() && payload.zero_copy().empty()) return barrier();
  if (call.redop == ReduceOp::kHierarchicalAdasum) {
    return adasum_.run_among(hosts_, call.sections, payload.data.data());
  }
  if (!is_elementwise(call.redop)) return adasum_.run(call.sections, payload.data.data());
  for (const Section& section : call.sections) {
    const Schedule& schedule = plans_.allreduce({section.count, size_of(section.dtype)});
    const Status status = executor_.run(schedule, payload.data.data() + section.offset,
                                        reducer_of(section.dtype, call.redop));
    if (!status.ok()) return status;
  }
  return payload.zero_copy().empty() ? Status() : zero_copy_allreduce(call, payload);
}

/// Reduces tensors in the caller's memory: through shared memory if all ranks have offered theirs,
/// otherwise by plans. The undo log saves inputs before they are overwritten in place.
Status NativeBackend::zero_copy_allreduce(const Call& call, Payload& payload) {
  std::size_t overwritten = 0;
  for (const ZeroCopyTensor& tensor : payload.zero_copy()) {
    if (must_save(tensor)) overwritten += tensor.bytes();
  }
  undo_.begin(*payload.undo, overwritten);
  const Result<bool> agreed = shared_.agreed();
  if (!agreed.ok()) return agreed.status();
  // The lane has left these tensors in place, whatever their sizes are.
  const auto way = plan::choose_way({.is_offered_by_all = agreed.value()}, {.zero_copy_from = 0});
  const Status status =
      way == plan::AllreduceWay::kZeroCopyShared
          ? shared_.run(payload.zero_copy(), call.redop, undo_, [this] { return barrier(); })
          : planned_allreduce(call, payload);
  if (status.ok()) undo_.clear();
  return status;
}

Status NativeBackend::planned_allreduce(const Call& call, const Payload& payload) {
  for (const ZeroCopyTensor& tensor : payload.zero_copy()) {
    const bool in_place = tensor.input == tensor.output;
    if (size() == 1 && !in_place) std::memcpy(tensor.output, tensor.input, tensor.bytes());
    Reducer reducer = reducer_of(tensor.dtype, call.redop);
    if (call.redop == ReduceOp::kAverage) reducer.divisor = static_cast<std::uint32_t>(size());
    PlanBuffers memory{tensor.output, tensor.input, must_save(tensor) ? &undo_ : nullptr};
    memory.bypasses_cache =
        !in_place && reducer.divisor == 1 && tensor.bytes() >= kernels::kBeyondCacheBytes;
    const Schedule& schedule = plans_.large_allreduce({tensor.count, size_of(tensor.dtype)});
    if (Status status = executor_.run(schedule, memory, reducer); !status.ok()) return status;
  }
  return {};
}

/// Waits until all ranks have entered the call, and compares their calls: by the eager messages
/// that they have posted, or by a barrier.
Status NativeBackend::meet(const Call& call) {
  return posts_eagerly(call) ? eager_.await(tag_, call.fingerprint) : barrier();
}

/// How the ranks meet in a call of so many bytes: over links in the plan itself, which saves the
/// time of a message. But not if a rank may have lent its tensor: where the calls differ, no link
/// may have begun to send from it.
PlanCache::Meeting NativeBackend::meeting_in_plan(const Call& call, std::size_t bytes) const {
  return bytes < limits_.lent_from && !posts_eagerly(call) ? PlanCache::Meeting::kYes
                                                           : PlanCache::Meeting::kNo;
}

/// The ranks meet, and the data goes along a tree or a chain from the root. If they did not meet
/// the root would return before the other ranks enter, and a rank with another call might never
/// meet it.
///
/// The root may have lent its tensor, and then has no result to give to a taker after its return.
/// So a large broadcast ends like a call whose results differ by rank.
Status NativeBackend::broadcast(const Call& call, Payload& payload) {
  const std::size_t bytes = extent(call.sections);
  const PlanCache::Meeting meeting = meeting_in_plan(call, bytes);
  if (meeting == PlanCache::Meeting::kNo) {
    if (Status status = meet(call); !status.ok()) return status;
  }
  // The root's plan only reads.
  auto* const data =
      rank() == call.root ? const_cast<std::byte*>(payload.input().data()) : payload.data.data();
  const Status done = executor_.run(plans_.broadcast(call.root, bytes, meeting), data);
  if (bytes < limits_.lent_from) return done;
  payload.form.emplace<Blocks>();
  return end_with_own_result(done, payload);
}

/// Exchanges the ranks' counts, then runs an allgather of the blocks around a ring. A large result
/// may be in the caller's memory, so that each rank keeps its own.
Status NativeBackend::allgather(const Section& block, Payload& payload, const Counts* known) {
  const std::size_t element = size_of(block.dtype);
  auto& counts = payload.form.emplace<Blocks>().counts;
  if (Status told = personal_.share_count(block.count, known, counts); !told.ok()) return told;
  const Result<std::size_t> total = gathered_bytes("allgather", counts, element);
  if (!total.ok()) return total.status();
  const bool own_result = total.value() >= limits_.lent_from;
  if (!own_result) payload.lent.room = {};
  const Status done = personal_.move(plans_.allgather(counts, element), total.value(), payload);
  return own_result ? end_with_own_result(done, payload) : done;
}

/// Leaves each rank its part alone, and ends with a barrier. A small one is reduced for all, which
/// saves the barrier.
Status NativeBackend::reduce_scatter(const Call& call, Payload& payload) {
  const Section& section = call.sections.front();
  const std::size_t element = size_of(section.dtype);
  const bool reduced_for_all = is_reduced_for_all(bytes_of(section));
  if (reduced_for_all) {
    if (Status reduced = allreduce(call, payload); !reduced.ok()) return reduced;
  }
  std::vector<std::uint64_t>& parts = payload.form.emplace<Blocks>().counts;
  parts = plan::parts_of(section.count, static_cast<std::size_t>(size()));
  if (reduced_for_all) return {};
  const Status done = personal_.reduce_scatter(
      section, static_cast<std::size_t>(parts[static_cast<std::size_t>(rank())]) * element,
      reducer_of(section.dtype, call.redop), payload);
  return end_with_own_result(done, payload);
}

/// Collectives in which a rank may have nothing to send before it has received something. Ranks
/// that call different things could then wait for each other, so they meet first. A small reduction
/// to a root is one for all, whose result every rank has: that saves the meeting and the barrier.
Status NativeBackend::one_way(const Call& call, Payload& payload, const Counts* counts) {
  const Section& section = call.sections.front();
  if (call.kind == Kind::kReduce && is_reduced_for_all(bytes_of(section))) {
    return allreduce(call, payload);
  }
  auto meeting = PlanCache::Meeting::kNo;
  if (counts == nullptr) {  // otherwise they have met
    // A scatter begins with the counts, which no rank lends; ranks differ in its size.
    meeting = meeting_in_plan(call, call.kind == Kind::kScatter ? 0 : bytes_of(section));
    if (meeting == PlanCache::Meeting::kNo) {
      if (Status met = meet(call); !met.ok()) return met;
    }
  }
  const Reducer reducer = reducer_of(section.dtype, call.redop);
  const Status done =
      call.kind == Kind::kScatter  ? personal_.scatter(call, payload, counts, meeting)
      : call.kind == Kind::kReduce ? personal_.reduce(call, reducer, payload, meeting)
                                   : personal_.scan(call, reducer, payload, meeting);
  return end_with_own_result(done, payload);
}

/// Ends a collective whose results differ by rank. No other rank has this rank's result. So no rank
/// may return before every rank has its own.
Status NativeBackend::end_with_own_result(Status done, Payload& payload) {
  if (!done.ok()) return done;
  Blocks& blocks = std::get<Blocks>(payload.form);
  blocks.of_this_rank = true;
  blocks.own_block_complete = true;
  Status met = barrier();
  if (met.ok()) blocks.own_block_complete = false;
  return met;
}

/// Sends each section of a state to the receivers, in segments that the donors share.
Status NativeBackend::transfer(const Call& call, Payload& payload) {
  if (Status status = barrier(); !status.ok()) return status;
  const auto* const state = std::get_if<StateSections>(&payload.form);
  std::vector<int> donors = call.donors;
  if (donors.size() > kMostDonors) donors.resize(kMostDonors);
  for (std::size_t i = 0; i < call.sections.size(); ++i) {
    const Section& section = call.sections[i];
    std::byte* const at =
        state == nullptr ? payload.data.data() + section.offset : state->sections[i].data();
    const Schedule schedule(plan::transfer(mesh_->rank(), donors, call.receivers, bytes_of(section),
                                           options_.transfer_segment_bytes));
    if (Status status = executor_.run(schedule, at); !status.ok()) return status;
    // Rotates the donors: a small section has a single segment, which the first donor sends.
    if (!donors.empty()) std::rotate(donors.begin(), donors.begin() + 1, donors.end());
  }
  return {};
}

}  // namespace elastic::collectives
