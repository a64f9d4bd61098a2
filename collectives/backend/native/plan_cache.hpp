#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collectives/backend/backend.hpp"
#include "collectives/plan/choose.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/parts.hpp"
#include "collectives/plan/schedule.hpp"

namespace elastic::collectives {

using plan::Schedule;

/// Makes the schedules of one rank and keeps them, because a training loop repeats the same shapes.
/// A returned schedule is valid until the next call of a member function.
///
/// Owned by the thread that runs the lane's operation.
class PlanCache {
 public:
  PlanCache(int rank, plan::Hosts hosts, std::size_t segment_bytes,
            const plan::Thresholds& thresholds);

  /// Replaces the constructor's values. To be called before the first operation with tensors.
  void use(const plan::Thresholds& thresholds, std::size_t segment_bytes) {
    thresholds_ = thresholds;
    segment_ = segment_bytes;
  }

  /// In place, of any size.
  const Schedule& allreduce(plan::Elements elements);
  /// For a zero-copy tensor: in place or out of place, and divided by Reducer::divisor.
  const Schedule& large_allreduce(plan::Elements elements);
  /// In place, on all parts.
  const Schedule& reduce_scatter(plan::Elements elements);
  /// Out of place: the data is this rank's part alone.
  const Schedule& direct_reduce_scatter(plan::Elements elements);
  /// Whether the ranks meet in a plan: then none completes it before all have started it.
  enum class Meeting : bool { kNo, kYes };
  const Schedule& broadcast(int root, std::size_t bytes, Meeting meeting = Meeting::kNo);
  const Schedule& barrier();
  /// In place, of a few numbers, by the same algorithm whatever was asked for.
  const Schedule& small_allreduce(std::size_t bytes);
  /// An allgather of small blocks of `bytes` each.
  const Schedule& small_allgather(std::size_t bytes);
  const Schedule& allgather(const std::vector<std::uint64_t>& counts, std::size_t element_bytes);
  /// An alltoall of small blocks of `bytes` each.
  const Schedule& small_alltoall(std::size_t bytes);
  const Schedule& reduce(int root, plan::Elements elements, Meeting meeting);
  const Schedule& scan(plan::Elements elements, Meeting meeting);
  const Schedule& shift(std::size_t bytes);

  std::size_t segment_bytes() const { return segment_; }
  bool on_one_host() const { return hosts_.count() == 1; }

 private:
  enum class Shape : std::uint8_t {
    kAllreduce,
    kLargeAllreduce,
    kReduceScatter,
    kDirectReduceScatter,
    kBroadcast,
    kBarrier,
    kSmallAllreduce,
    kSmallAllgather,
    kSmallAlltoall,
    kReduce,
    kScan,
    kShift,
  };
  struct Key {
    Shape shape;
    int root = 0;
    plan::Elements elements;
    Meeting meeting = Meeting::kNo;
    bool operator==(const Key& other) const {
      return shape == other.shape && root == other.root && elements.count == other.elements.count &&
             elements.bytes == other.elements.bytes && meeting == other.meeting;
    }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  /// Up to here a tree reduces faster than a chain, and a scan by doubling faster than by a chain.
  static constexpr std::size_t kShortReduction = 32 * 1024;
  /// Trainers have tens of shapes. The limit bounds the memory if each call has a new shape.
  static constexpr std::size_t kMaxSchedules = 512;

  template <typename Make>
  const Schedule& find(const Key& key, const Make& make);
  plan::Plan make_allreduce(plan::AllreduceAlgorithm algorithm, plan::Elements elements) const;
  plan::Plan make_broadcast(int root, std::size_t bytes) const;
  plan::Plan with(Meeting meeting, plan::Plan plan) const;

  int rank_;
  int size_;
  plan::Hosts hosts_;
  std::size_t segment_;
  plan::Thresholds thresholds_;
  std::unordered_map<Key, Schedule, Hash> schedules_;
  // The latest allgather alone is kept: with one count for each rank its key would be long.
  std::vector<std::uint64_t> counts_;
  std::size_t element_ = 0;
  Schedule allgather_;
};

}  // namespace elastic::collectives
