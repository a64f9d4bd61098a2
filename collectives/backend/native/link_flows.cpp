#include "collectives/backend/native/link_flows.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>

#include "collectives/backend/native/greatest.hpp"
#include "collectives/backend/native/timed_message.hpp"
#include "collectives/plan/flows.hpp"

namespace elastic::collectives {
namespace {

using plan::FlowTime;
using plan::Hosts;

/// Messages of each kind. On a fresh flow TCP's window still grows during the first message, and
/// one of the others may be disturbed.
constexpr int kBulkTimes = 3;
constexpr int kTrialTimes = 3;

void for_each_far_link(transport::Mesh& mesh, const Hosts& hosts,
                       const std::function<void(transport::Link&)>& does) {
  for (int peer = 0; peer < mesh.size(); ++peer) {
    const bool far = hosts.of(peer) != hosts.of(mesh.rank());
    if (far && mesh.has_link(peer)) does(mesh.link(peer));
  }
}

/// The shortest of `times` tries, in nanoseconds. The slowest rank gives the time of a try. That it
/// is asked for lets all ranks start the next message at about the same time.
Result<std::uint64_t> bulk_time(Executor& executor, PlanCache& plans, TimedMessage& message,
                                int times) {
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < times; ++i) {
    const Result<Duration> took = message.run(executor);
    if (!took.ok()) return took.status();
    std::array<std::int64_t, 1> slowest = {
        std::chrono::duration_cast<std::chrono::nanoseconds>(took.value()).count()};
    if (Status told = take_greatest(executor, plans, slowest); !told.ok()) return told;
    best = std::min(best, static_cast<std::uint64_t>(slowest[0]));
  }
  return best;
}

/// The cost of links by the best of a few tries; the first try that shows a fast line is the last.
/// One try is not enough, because a fresh connection begins slowly.
Result<plan::LinkCost> try_line(Executor& executor, PlanCache& plans, const Neighbours& neighbours,
                                std::uint64_t latency_ns, std::uint64_t opened) {
  TimedMessage trial(neighbours, plan::kTrialBytes);
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  plan::LinkCost cost;
  for (int i = 0; i < kTrialTimes && !plan::may_try_flows(cost, opened); ++i) {
    const auto time = bulk_time(executor, plans, trial, 1);
    if (!time.ok()) return time.status();
    best = std::min(best, time.value());
    cost = plan::bulk_cost(latency_ns, best, plan::kTrialBytes);
  }
  return cost;
}

}  // namespace

std::uint64_t flows_between_hosts(transport::Mesh& mesh, const Hosts& hosts) {
  std::size_t most = 0;
  for_each_far_link(mesh, hosts,
                    [&](const transport::Link& link) { most = std::max(most, link.flows()); });
  return most;
}

void use_flows(transport::Mesh& mesh, const Hosts& hosts, std::uint64_t flows) {
  for_each_far_link(
      mesh, hosts, [&](transport::Link& link) { link.use_flows(static_cast<std::size_t>(flows)); });
}

/// 1. With one flow, estimate the bandwidth by a few trial messages. A line that is too slow keeps
///    one flow, because longer messages would take too long.
/// 2. Choose the size of a bulk message by this estimate, so that it takes some milliseconds.
/// 3. Time the bulk message with each number of flows that plan::next_flows asks for.
/// 4. Use the number that plan::choose_flows selects from the times.
/// All ranks make the same choices, because `bulk_time` gives all of them the same times.
Result<plan::LinkCosts> measure_flows(Executor& executor, PlanCache& plans, transport::Mesh& mesh,
                                      const Hosts& hosts, const plan::LinkCosts& one_flow,
                                      std::uint64_t opened) {
  use_flows(mesh, hosts, 1);
  if (!plan::may_try_line(one_flow.between, opened)) return one_flow;
  const Neighbours neighbours = between_hosts(mesh.rank(), hosts);
  const auto bulk = try_line(executor, plans, neighbours, one_flow.between.latency_ns, opened);
  if (!bulk.ok()) return bulk.status();
  if (!plan::may_try_flows(bulk.value(), opened)) return one_flow;
  const std::size_t bytes = plan::bulk_bytes(bulk.value(), opened, transport::Link::kStripeBytes);
  TimedMessage message(neighbours, bytes);
  std::vector<FlowTime> times;
  while (const std::uint64_t flows = plan::next_flows(times, opened)) {
    use_flows(mesh, hosts, flows);
    const auto time = bulk_time(executor, plans, message, kBulkTimes);
    if (!time.ok()) return time.status();
    times.push_back({flows, time.value()});
  }
  const FlowTime chosen = plan::choose_flows(times);
  use_flows(mesh, hosts, chosen.flows);
  return plan::LinkCosts{one_flow.inside, plan::with_flows(one_flow.between, chosen, bytes),
                         chosen.flows};
}

}  // namespace elastic::collectives
