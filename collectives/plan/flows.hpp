#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/plan/tuning.hpp"

/// How many of the TCP connections (flows) of each link between hosts carry data. Networks may cap
/// a single flow far below the line, and where they do not, every flow more costs a little.
namespace elastic::plan {

/// More are never tried, whatever a rank says that it has.
inline constexpr std::uint64_t kMostFlows = 64;

/// The time of a bulk message over a number of flows.
struct FlowTime {
  std::uint64_t flows = 1;
  std::uint64_t nanoseconds = 0;
};

/// Size of the message that shows a line's rate; token buckets let shorter ones pass at full speed.
inline constexpr std::size_t kTrialBytes = kMib;

/// Whether to find out how fast the line is: only where there is a choice, and messages of 64 KiB
/// did not show it to be slow.
bool may_try_line(const LinkCost& at_first, std::uint64_t opened);

/// Whether to try several flows: only where there is a choice, and `one_flow` is so fast that it
/// takes no more than some tens of milliseconds.
bool may_try_flows(const LinkCost& one_flow, std::uint64_t opened);

/// How long the message is: takes a few milliseconds over one flow, but has `stripe` bytes for each
/// of the opened flows.
std::size_t bulk_bytes(const LinkCost& one_flow, std::uint64_t opened, std::size_t stripe);

/// How many flows to try after those in `times`, which are ascending: one, then twice as many each
/// time, and at last all. 0: enough, because all were tried or the last ones were of no use.
std::uint64_t next_flows(const std::vector<FlowTime>& times, std::uint64_t opened);

/// The fewest that take hardly longer than the best. One of `times`, which is not empty.
FlowTime choose_flows(const std::vector<FlowTime>& times);

/// `latency_ns`, and what is left of the time for `bytes`.
LinkCost bulk_cost(std::uint64_t latency_ns, std::uint64_t nanoseconds, std::size_t bytes);

/// The cost of links when `chosen` carries `bytes`: a single flow as before.
LinkCost with_flows(const LinkCost& one_flow, const FlowTime& chosen, std::size_t bytes);

}  // namespace elastic::plan
