#include "collectives/backend/native/link_costs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/clock.hpp"
#include "collectives/plan/builder.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives {
namespace {

using plan::Hosts;

constexpr std::size_t kSmallBytes = 64;
constexpr std::size_t kLargeBytes = 64 * 1024;
/// The first finds the others late and caches cold; the best tells what the link can do.
constexpr int kSmallTimes = 5;
constexpr int kLargeTimes = 3;

/// Nanoseconds, for messages of either size.
struct Times {
  std::uint64_t small = 0;
  std::uint64_t large = 0;
};

/// Whom a rank sends to and receives from, if anybody.
struct Neighbours {
  int next = plan::Step::kNone;
  int previous = plan::Step::kNone;
};

Neighbours inside_host(int rank, const Hosts& hosts) {
  const std::vector<int>& local = hosts.ranks(hosts.of(rank));
  const auto size = static_cast<int>(local.size());
  if (size == 1) return {};
  const auto index = static_cast<int>(std::find(local.begin(), local.end(), rank) - local.begin());
  return {local[static_cast<std::size_t>(plan::around(index, 1, size))],
          local[static_cast<std::size_t>(plan::around(index, -1, size))]};
}

/// The ranks with the same place on the hosts before and after, where these have so many.
Neighbours between_hosts(int rank, const Hosts& hosts) {
  const int host = hosts.of(rank);
  const std::vector<int>& local = hosts.ranks(host);
  const auto index =
      static_cast<std::size_t>(std::find(local.begin(), local.end(), rank) - local.begin());
  const auto at = [&](int steps) {
    const std::vector<int>& there = hosts.ranks(plan::around(host, steps, hosts.count()));
    return index < there.size() ? there[index] : plan::Step::kNone;
  };
  return hosts.count() == 1 ? Neighbours{} : Neighbours{at(1), at(-1)};
}

Schedule message(const Neighbours& neighbours, std::size_t bytes) {
  plan::Builder build;
  if (neighbours.next >= 0) build.send(neighbours.next, {plan::Area::kInput, 0, bytes});
  if (neighbours.previous >= 0) build.receive(neighbours.previous, {plan::Area::kData, 0, bytes});
  return Schedule(build.take());
}

Result<std::uint64_t> best_time(Executor& executor, const Neighbours& neighbours, std::size_t bytes,
                                int times) {
  const std::vector<std::byte> sent(bytes);
  std::vector<std::byte> received(bytes);
  const Schedule schedule = message(neighbours, bytes);
  Duration best = Duration::max();
  for (int i = 0; i < times; ++i) {
    const TimePoint start = Clock::now();
    if (Status status = executor.run_alone(schedule, {received.data(), sent.data()});
        !status.ok()) {
      return status;
    }
    best = std::min(best, Clock::now() - start);
  }
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(best).count();
  return static_cast<std::uint64_t>(nanoseconds);
}

Result<Times> measure(Executor& executor, const Neighbours& neighbours) {
  Times times;
  if (neighbours.next < 0 && neighbours.previous < 0) return times;
  const auto small = best_time(executor, neighbours, kSmallBytes, kSmallTimes);
  if (!small.ok()) return small.status();
  const auto large = best_time(executor, neighbours, kLargeBytes, kLargeTimes);
  if (!large.ok()) return large.status();
  return Times{small.value(), std::max(large.value(), small.value())};
}

plan::LinkCost cost_of(const Times& times) {
  return {times.small, (times.large - times.small) * (plan::kMib / (kLargeBytes - kSmallBytes))};
}

}  // namespace

Result<plan::LinkCosts> measure_link_costs(Executor& executor, PlanCache& plans, int rank,
                                           const Hosts& hosts) {
  const auto inside = measure(executor, inside_host(rank, hosts));
  if (!inside.ok()) return inside.status();
  const auto between = measure(executor, between_hosts(rank, hosts));
  if (!between.ok()) return between.status();

  using Both = std::array<Times, 2>;
  std::vector<Both> of_rank(static_cast<std::size_t>(hosts.size()));
  of_rank[static_cast<std::size_t>(rank)] = {inside.value(), between.value()};
  const Status told = executor.run_alone(
      plans.exchange(sizeof(Both)), Memory::in_place(reinterpret_cast<std::byte*>(of_rank.data())));
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
