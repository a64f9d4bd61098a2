#include "collectives/backend/native/plan_cache.hpp"

#include <utility>

#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/barrier.hpp"
#include "collectives/plan/broadcast.hpp"
#include "collectives/plan/exchange.hpp"
#include "collectives/plan/make_allreduce.hpp"
#include "collectives/plan/personal.hpp"
#include "collectives/plan/reduce.hpp"
#include "collectives/plan/ring.hpp"

namespace elastic::collectives {

using plan::Elements;

PlanCache::PlanCache(int rank, plan::Hosts hosts, std::size_t segment_bytes,
                     const plan::Thresholds& thresholds)
    : rank_(rank),
      size_(hosts.size()),
      hosts_(std::move(hosts)),
      segment_(segment_bytes),
      thresholds_(thresholds),
      allgather_(plan::Plan{}) {}

std::size_t PlanCache::Hash::operator()(const Key& key) const {
  // Multiplication by an odd number with many bits spreads counts that are multiples of each other.
  constexpr std::size_t kSpread = 0x9e3779b97f4a7c15ULL;
  std::size_t hash = key.elements.count * kSpread;
  hash = (hash ^ key.elements.bytes) * kSpread;
  hash = (hash ^ static_cast<std::size_t>(key.root)) * kSpread;
  hash = (hash ^ static_cast<std::size_t>(key.meeting)) * kSpread;
  return (hash ^ static_cast<std::size_t>(key.shape)) * kSpread >> 16;
}

template <typename Make>
const Schedule& PlanCache::find(const Key& key, const Make& make) {
  if (const auto found = schedules_.find(key); found != schedules_.end()) return found->second;
  if (schedules_.size() >= kMaxSchedules) schedules_.clear();
  return schedules_.try_emplace(key, make()).first->second;
}

const Schedule& PlanCache::allreduce(Elements elements) {
  const std::size_t bytes = elements.count * elements.bytes;
  return find({Shape::kAllreduce, 0, elements}, [&] {
    return make_allreduce(plan::choose_allreduce(hosts_, bytes, thresholds_), elements);
  });
}

const Schedule& PlanCache::large_allreduce(Elements elements) {
  return find({Shape::kLargeAllreduce, 0, elements}, [&] {
    const std::size_t bytes = elements.count * elements.bytes;
    return make_allreduce(plan::choose_large_allreduce(hosts_, bytes, thresholds_), elements);
  });
}

plan::Plan PlanCache::make_allreduce(plan::AllreduceAlgorithm algorithm, Elements elements) const {
  return plan::make_allreduce(algorithm, rank_, hosts_, elements, segment_,
                              thresholds_.exchange_segment_bytes);
}

const Schedule& PlanCache::reduce_scatter(Elements elements) {
  return find({Shape::kReduceScatter, 0, elements},
              [&] { return plan::ring_reduce_scatter(rank_, size_, elements, segment_); });
}

const Schedule& PlanCache::direct_reduce_scatter(Elements elements) {
  return find({Shape::kDirectReduceScatter, 0, elements},
              [&] { return plan::direct_reduce_scatter(rank_, size_, elements, segment_); });
}

const Schedule& PlanCache::broadcast(int root, std::size_t bytes, Meeting meeting) {
  return find({Shape::kBroadcast, root, {bytes, 1}, meeting},
              [&] { return with(meeting, make_broadcast(root, bytes)); });
}

plan::Plan PlanCache::with(Meeting meeting, plan::Plan plan) const {
  return meeting == Meeting::kYes ? plan::with_barrier(rank_, size_, plan) : std::move(plan);
}

plan::Plan PlanCache::make_broadcast(int root, std::size_t bytes) const {
  if (plan::choose_tree_broadcast(size_, bytes, thresholds_)) {
    return plan::tree_broadcast(rank_, size_, root, bytes);
  }
  return plan::chain_broadcast(rank_, size_, root, bytes, segment_);
}

const Schedule& PlanCache::barrier() {
  return find({Shape::kBarrier, 0, {}}, [&] { return plan::dissemination_barrier(rank_, size_); });
}

const Schedule& PlanCache::small_allreduce(std::size_t bytes) {
  return find({Shape::kSmallAllreduce, 0, {bytes, 1}}, [&] {
    return size_ <= plan::kOneShotAllgatherRanks
               ? plan::one_shot_allreduce(rank_, size_, bytes)
               : plan::recursive_doubling_allreduce(rank_, size_, bytes);
  });
}

const Schedule& PlanCache::small_allgather(std::size_t bytes) {
  return find({Shape::kSmallAllgather, 0, {bytes, 1}}, [&] {
    return size_ <= plan::kOneShotAllgatherRanks
               ? plan::one_shot_allgather(rank_, size_, bytes)
               : plan::dissemination_allgather(rank_, size_, bytes);
  });
}

const Schedule& PlanCache::allgather(const std::vector<std::uint64_t>& counts,
                                     std::size_t element_bytes) {
  if (element_ != element_bytes || counts_ != counts) {
    allgather_ = Schedule(plan::ring_allgather(rank_, counts, element_bytes, segment_));
    counts_ = counts;
    element_ = element_bytes;
  }
  return allgather_;
}

const Schedule& PlanCache::small_alltoall(std::size_t bytes) {
  return find({Shape::kSmallAlltoall, 0, {bytes, 1}}, [&] {
    const std::vector<std::uint64_t> blocks(static_cast<std::size_t>(size_), bytes);
    return plan::alltoall(rank_, blocks, blocks, segment_);
  });
}

const Schedule& PlanCache::reduce(int root, Elements elements, Meeting meeting) {
  return find({Shape::kReduce, root, elements, meeting}, [&] {
    const std::size_t bytes = elements.count * elements.bytes;
    return with(meeting, bytes <= kShortReduction
                             ? plan::tree_reduce(rank_, size_, root, bytes)
                             : plan::chain_reduce(rank_, size_, root, elements, segment_));
  });
}

const Schedule& PlanCache::scan(Elements elements, Meeting meeting) {
  return find({Shape::kScan, 0, elements, meeting}, [&] {
    const std::size_t bytes = elements.count * elements.bytes;
    return with(meeting, bytes <= kShortReduction
                             ? plan::doubling_scan(rank_, size_, bytes)
                             : plan::chain_scan(rank_, size_, elements, segment_));
  });
}

const Schedule& PlanCache::shift(std::size_t bytes) {
  return find({Shape::kShift, 0, {bytes, 1}}, [&] { return plan::shift(rank_, size_, bytes); });
}

}  // namespace elastic::collectives
