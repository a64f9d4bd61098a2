#include "collectives/plan/flows.hpp"

#include <algorithm>

namespace elastic::plan {
namespace {

/// 2 Gbit/s: up to there no network caps a flow, and more of them would be tried for too long.
constexpr std::uint64_t kSlowest = kMib * 8 / 2;  // nanoseconds for a MiB
/// 0.25 Gbit/s of the short messages that links were measured with: they are over before a
/// connection is as fast as it gets.
constexpr std::uint64_t kSlowestAtFirst = 8 * kSlowest;
/// The intended time of a bulk message over one flow.
constexpr std::uint64_t kBulkNanoseconds = 4'000'000;
constexpr std::uint64_t kLeastBulk = kMib;
constexpr std::uint64_t kMostBulk = 8 * kMib;
/// A longer time means a stopped clock, or a rank that sends nonsense. 20 minutes.
constexpr std::uint64_t kMostTime = std::uint64_t{1} << 40;

/// The fewest flows within a tenth of the best are taken, so that noise alone adds none. More are
/// tried for a smaller gain: the next ones may add to it.
constexpr std::uint64_t kHardlyLonger = 110;  // percent
constexpr std::uint64_t kNoGain = 95;         // percent

std::uint64_t bounded(std::uint64_t nanoseconds) {
  return std::clamp<std::uint64_t>(nanoseconds, 1, kMostTime);
}

std::uint64_t best_of(const std::vector<FlowTime>& times, std::size_t count) {
  std::uint64_t best = kMostTime;
  for (std::size_t i = 0; i < count; ++i) best = std::min(best, bounded(times[i].nanoseconds));
  return best;
}

}  // namespace

bool may_try_line(const LinkCost& at_first, std::uint64_t opened) {
  return opened > 1 && at_first.ns_per_mib > 0 && at_first.ns_per_mib <= kSlowestAtFirst;
}

bool may_try_flows(const LinkCost& one_flow, std::uint64_t opened) {
  return opened > 1 && one_flow.ns_per_mib > 0 && one_flow.ns_per_mib <= kSlowest;
}

std::size_t bulk_bytes(const LinkCost& one_flow, std::uint64_t opened, std::size_t stripe) {
  const std::uint64_t of_time =
      kBulkNanoseconds * kMib / std::max<std::uint64_t>(one_flow.ns_per_mib, 1);
  const std::uint64_t of_each = std::clamp<std::uint64_t>(opened, 1, kMostFlows) * stripe;
  const std::uint64_t wanted = std::clamp(of_time, kLeastBulk, kMostBulk);
  return static_cast<std::size_t>((wanted + of_each - 1) / of_each * of_each);
}

std::uint64_t next_flows(const std::vector<FlowTime>& times, std::uint64_t opened) {
  if (times.empty()) return 1;
  const std::uint64_t most = std::min(opened, kMostFlows);
  const FlowTime& last = times.back();
  if (last.flows >= most) return 0;
  const bool gained = times.size() == 1 ||
                      bounded(last.nanoseconds) * 100 < best_of(times, times.size() - 1) * kNoGain;
  return gained ? std::min(last.flows * 2, most) : 0;
}

FlowTime choose_flows(const std::vector<FlowTime>& times) {
  const std::uint64_t enough = best_of(times, times.size()) * kHardlyLonger / 100;
  return *std::find_if(times.begin(), times.end(),
                       [&](const FlowTime& one) { return bounded(one.nanoseconds) <= enough; });
}

LinkCost bulk_cost(std::uint64_t latency_ns, std::uint64_t nanoseconds, std::size_t bytes) {
  const std::uint64_t took = bounded(nanoseconds);
  const std::uint64_t moving = took - std::min(took, latency_ns);
  const std::uint64_t length = std::max<std::uint64_t>(bytes, 1);
  return {latency_ns, std::max<std::uint64_t>(moving * kMib / length, 1)};
}

LinkCost with_flows(const LinkCost& one_flow, const FlowTime& chosen, std::size_t bytes) {
  if (chosen.flows == 1) return one_flow;
  return bulk_cost(one_flow.latency_ns, chosen.nanoseconds, bytes);
}

}  // namespace elastic::plan
