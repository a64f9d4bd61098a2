#include "collectives/backend/native/link_costs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "collectives/backend/native/timed_message.hpp"

namespace elastic::collectives {
namespace {

using plan::Hosts;

constexpr std::size_t kSmallBytes = 64;
constexpr std::size_t kLargeBytes = 64 * 1024;
/// Messages of each size. The first meets late peers and cold caches; the best shows the cost.
constexpr int kSmallTimes = 5;
constexpr int kLargeTimes = 3;

/// Nanoseconds of one message of either size.
struct Times {
  std::uint64_t small = 0;
  std::uint64_t large = 0;
};

Result<std::uint64_t> best_time(Executor& executor, const Neighbours& neighbours, std::size_t bytes,
                                int times) {
  TimedMessage message(neighbours, bytes);
  Duration best = Duration::max();
  for (int i = 0; i < times; ++i) {
    const Result<Duration> took = message.run(executor);
    if (!took.ok()) return took.status();
    best = std::min(best, took.value());
  }
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(best).count();
  return static_cast<std::uint64_t>(nanoseconds);
}

Result<Times> measure(Executor& executor, const Neighbours& neighbours) {
  Times times;
  if (!neighbours.any()) return times;
  const auto small = best_time(executor, neighbours, kSmallBytes, kSmallTimes);
  if (!small.ok()) return small.status();
  const auto large = best_time(executor, neighbours, kLargeBytes, kLargeTimes);
  if (!large.ok()) return large.status();
  return Times{small.value(), std::max(large.value(), small.value())};
}

/// Noise can make small messages seem as slow as large ones. Then all of a large one's time counts
/// as that of its bytes: the least that the bandwidth can be, and no bandwidth without a limit.
plan::LinkCost cost_of(const Times& times) {
  if (times.large == times.small) {
    return {times.small, times.large * (plan::kMib / kLargeBytes)};
  }
  return {times.small, (times.large - times.small) * (plan::kMib / (kLargeBytes - kSmallBytes))};
}

}  // namespace

/// 1. Time messages of 64 bytes and of 64 KiB inside the host, then between hosts. The shortest of
///    several tries counts.
/// 2. Exchange the times by an allgather, and take the greatest of each kind.
/// The small message gives the latency; the difference of both gives the time per MiB.
Result<plan::LinkCosts> measure_link_costs(Executor& executor, PlanCache& plans, int rank,
                                           const Hosts& hosts) {
  const auto inside = measure(executor, inside_host(rank, hosts));
  if (!inside.ok()) return inside.status();
  const auto between = measure(executor, between_hosts(rank, hosts));
  if (!between.ok()) return between.status();

  using Both = std::array<Times, 2>;
  std::vector<Both> of_rank(static_cast<std::size_t>(hosts.size()));
  of_rank[static_cast<std::size_t>(rank)] = {inside.value(), between.value()};
  const Status told =
      executor.run_alone(plans.small_allgather(sizeof(Both)),
                         PlanBuffers::in_place(reinterpret_cast<std::byte*>(of_rank.data())));
  if (!told.ok()) return told;
  Both greatest;
  for (const Both& one : of_rank) {
    for (std::size_t kind = 0; kind < greatest.size(); ++kind) {
      greatest[kind].small = std::max(greatest[kind].small, one[kind].small);
      greatest[kind].large = std::max(greatest[kind].large, one[kind].large);
    }
  }
  return plan::LinkCosts{cost_of(greatest[0]), cost_of(greatest[1])};
}

}  // namespace elastic::collectives
