#include "collectives/backend/native/link_costs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"
#include "collectives/backend/native/greatest.hpp"
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
/// 2. Take the greatest of each kind on all ranks.
/// The small message gives the latency; the difference of both gives the time per MiB.
Result<plan::LinkCosts> measure_link_costs(Executor& executor, PlanCache& plans, int rank,
                                           const Hosts& hosts) {
  const auto inside = measure(executor, inside_host(rank, hosts));
  if (!inside.ok()) return inside.status();
  const auto between = measure(executor, between_hosts(rank, hosts));
  if (!between.ok()) return between.status();

  std::array<std::int64_t, 4> times{};
  const auto put = [&times](std::size_t at, const Times& of) {
    times[at] = static_cast<std::int64_t>(of.small);
    times[at + 1] = static_cast<std::int64_t>(of.large);
  };
  const auto get = [&times](std::size_t at) {
    return Times{static_cast<std::uint64_t>(times[at]), static_cast<std::uint64_t>(times[at + 1])};
  };
  put(0, inside.value());
  put(2, between.value());
  if (Status told = take_greatest(executor, plans, times); !told.ok()) return told;
  return plan::LinkCosts{cost_of(get(0)), cost_of(get(2))};
}

}  // namespace elastic::collectives
