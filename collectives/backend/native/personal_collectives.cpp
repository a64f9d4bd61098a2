#include "collectives/backend/native/personal_collectives.hpp"

#include <cstring>
#include <numeric>
#include <utility>

#include "collectives/plan/parts.hpp"
#include "collectives/plan/personal.hpp"

namespace elastic::collectives {
namespace {

using Counts = std::vector<std::uint64_t>;

Counts in_bytes(Counts counts, std::size_t element) {
  for (std::uint64_t& count : counts) count *= element;
  return counts;
}

std::size_t total(const Counts& counts) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
}

/// Column `rank` of a square matrix, which lies row by row.
Counts column(const Counts& matrix, int size, int rank) {
  Counts found;
  const auto width = static_cast<std::size_t>(size);
  for (std::size_t at = static_cast<std::size_t>(rank); at < width * width; at += width) {
    found.push_back(matrix[at]);
  }
  return found;
}

std::byte* memory_of(Counts& counts) {
  return reinterpret_cast<std::byte*>(counts.data());
}

}  // namespace

/// Tells each rank what it gets from this one, unless all ranks know, and exchanges the blocks.
Status PersonalCollectives::alltoall(const Call& call, Payload& payload, const Counts* known) {
  const std::size_t element = size_of(call.sections.front().dtype);
  Counts from = call.counts;
  if (known != nullptr) {
    from = column(*known, size_, rank_);
  } else if (call.ragged) {
    if (Status told = tell_counts(call.counts, from); !told.ok()) return told;
  }
  payload.form.emplace<Blocks>().counts = from;
  const Counts result = in_bytes(std::move(from), element);
  return move(Schedule(plan::alltoall(rank_, in_bytes(call.counts, element), result,
                                      plans_.segment_bytes())),
              total(result), payload);
}

/// An alltoall of one number.
Status PersonalCollectives::tell_counts(const Counts& to, Counts& from) {
  Counts given = to;
  PlanBuffers memory;
  memory.data = memory_of(from);
  memory.input = memory_of(given);
  return executor_.run_alone(plans_.small_alltoall(sizeof(to.front())), memory);
}

Status PersonalCollectives::share_count(std::uint64_t own, const Counts* known, Counts& counts) {
  if (known != nullptr) {
    counts = *known;
    return {};
  }
  counts.assign(static_cast<std::size_t>(size_), 0);
  counts[static_cast<std::size_t>(rank_)] = own;
  return executor_.run(plans_.small_allgather(sizeof(counts.front())), memory_of(counts));
}

/// All ranks learn all counts, so that they agree whether the blocks are too large.
Status PersonalCollectives::gather(const Call& call, Payload& payload, const Counts* known) {
  const Section& block = call.sections.front();
  const std::size_t element = size_of(block.dtype);
  Counts& counts = payload.form.emplace<Blocks>().counts;
  if (Status told = share_count(block.count, known, counts); !told.ok()) return told;
  const Result<std::size_t> whole = gathered_bytes("gather", counts, element);
  if (!whole.ok()) return whole.status();
  return move(
      Schedule(plan::gather(rank_, call.root, in_bytes(counts, element), plans_.segment_bytes())),
      rank_ == call.root ? whole.value() : 0, payload);
}

/// The root tells all ranks all counts, unless they know, before it sends the blocks.
Status PersonalCollectives::scatter(const Call& call, Payload& payload, const Counts* known,
                                    PlanCache::Meeting meeting) {
  const std::size_t element = size_of(call.sections.front().dtype);
  Counts& counts = payload.form.emplace<Blocks>().counts;
  counts = known != nullptr ? *known : call.counts;
  counts.resize(static_cast<std::size_t>(size_));
  if (known == nullptr) {
    const Status told =
        executor_.run(plans_.broadcast(call.root, counts.size() * sizeof(counts.front()), meeting),
                      memory_of(counts));
    if (!told.ok()) return told;
  }
  const Result<std::size_t> whole = gathered_bytes("scatter", counts, element);
  if (!whole.ok()) return whole.status();
  const Counts bytes = in_bytes(counts, element);
  return move(Schedule(plan::scatter(rank_, call.root, bytes, plans_.segment_bytes())),
              static_cast<std::size_t>(bytes[static_cast<std::size_t>(rank_)]), payload);
}

namespace {

/// Whether the result goes to the caller's room, which is cut to its size then.
bool delivers(std::size_t result_bytes, Payload& payload) {
  if (result_bytes == 0 || result_bytes > payload.lent.room.size()) return false;
  payload.lent.room = payload.lent.room.first(result_bytes);
  std::get<Blocks>(payload.form).delivered = true;
  return true;
}

}  // namespace

Status PersonalCollectives::move(const Schedule& schedule, std::size_t result_bytes,
                                 Payload& payload, const Reducer& reducer) {
  const bool to_room = delivers(result_bytes, payload);
  if (!to_room) spare_.resize(result_bytes);
  PlanBuffers memory;
  memory.data = to_room ? payload.lent.room.data() : spare_.data();
  memory.input = payload.input().data();
  const Status status = executor_.run_alone(schedule, memory, reducer);
  if (!to_room) std::swap(spare_, payload.data);
  return status;
}

/// A lent input stays as it is: a rank that passes sums on makes them in other memory.
Status PersonalCollectives::reduce(const Call& call, const Reducer& reducer, Payload& payload,
                                   PlanCache::Meeting meeting) {
  const Section& section = call.sections.front();
  payload.form.emplace<Blocks>();
  const bool to_room = rank_ == call.root && delivers(bytes_of(section), payload);
  if (!to_room) payload.data.resize(bytes_of(section));
  PlanBuffers memory;
  memory.data = to_room ? payload.lent.room.data() : payload.data.data();
  memory.input = payload.input().data();
  return executor_.run_alone(plans_.reduce(call.root, {section.count, reducer.element}, meeting),
                             memory, reducer);
}

/// Within a host each rank gets its part from all others directly, to the place of the result.
/// Between hosts a ring sends least over the network; it works in place, on all parts.
Status PersonalCollectives::reduce_scatter(const Section& section, std::size_t result_bytes,
                                           const Reducer& reducer, Payload& payload) {
  const plan::Elements elements{section.count, reducer.element};
  if (plans_.on_one_host()) {
    return move(plans_.direct_reduce_scatter(elements), result_bytes, payload, reducer);
  }
  if (const auto input = payload.lent.input; !input.empty()) {
    payload.data.resize(input.size());
    std::memcpy(payload.data.data(), input.data(), input.size());
  }
  std::byte* const data = payload.data.data();
  const Status status =
      executor_.run_alone(plans_.reduce_scatter(elements), PlanBuffers::in_place(data), reducer);
  if (!status.ok()) return status;
  const std::size_t begin = plan::part_begin(section.count, static_cast<std::size_t>(size_),
                                             static_cast<std::size_t>(rank_));
  if (result_bytes > 0) std::memmove(data, data + begin * reducer.element, result_bytes);
  payload.data.resize(result_bytes);
  return status;
}

Status PersonalCollectives::scan(const Call& call, const Reducer& reducer, Payload& payload,
                                 PlanCache::Meeting meeting) {
  const Section& section = call.sections.front();
  payload.form.emplace<Blocks>();
  const Status status = executor_.run(plans_.scan({section.count, reducer.element}, meeting),
                                      payload.data.data(), reducer);
  if (!status.ok() || !call.exclusive) return status;
  return executor_.run(plans_.shift(bytes_of(section)), payload.data.data());
}

}  // namespace elastic::collectives
