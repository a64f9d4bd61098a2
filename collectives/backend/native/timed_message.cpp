#include "collectives/backend/native/timed_message.hpp"

#include <algorithm>

#include "collectives/plan/builder.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives {
namespace {

using plan::Hosts;

Schedule message(const Neighbours& neighbours, std::size_t bytes) {
  plan::Builder build;
  if (neighbours.next >= 0) build.send(neighbours.next, {plan::Area::kInput, 0, bytes});
  if (neighbours.previous >= 0) build.receive(neighbours.previous, {plan::Area::kData, 0, bytes});
  return Schedule(build.take());
}

}  // namespace

Neighbours inside_host(int rank, const Hosts& hosts) {
  const std::vector<int>& local = hosts.ranks(hosts.of(rank));
  const auto size = static_cast<int>(local.size());
  if (size == 1) return {};
  const auto index = static_cast<int>(std::find(local.begin(), local.end(), rank) - local.begin());
  return {local[static_cast<std::size_t>(plan::around(index, 1, size))],
          local[static_cast<std::size_t>(plan::around(index, -1, size))]};
}

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

TimedMessage::TimedMessage(const Neighbours& neighbours, std::size_t bytes)
    : sent_(neighbours.next >= 0 ? bytes : 0),
      received_(neighbours.previous >= 0 ? bytes : 0),
      schedule_(message(neighbours, bytes)) {}

Result<Duration> TimedMessage::run(Executor& executor) {
  const TimePoint start = Clock::now();
  const Status status = executor.run_alone(schedule_, {received_.data(), sent_.data()});
  if (!status.ok()) return status;
  return Clock::now() - start;
}

}  // namespace elastic::collectives
