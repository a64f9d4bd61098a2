#include "collectives/backend/native/view_capabilities.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "base/log.hpp"
#include "collectives/backend/native/greatest.hpp"
#include "collectives/backend/native/link_costs.hpp"
#include "collectives/backend/native/link_flows.hpp"
#include "collectives/plan/flows.hpp"

namespace elastic::collectives {
namespace {

using plan::Hosts;

/// A word on each rank's links and options: numbers of which all learn the greatest that a rank has
/// given. The least is the greatest of negative ones.
enum Number : std::uint8_t {
  kNegativeCapacity,  ///< least of a rank's links inside its host, in bytes; 0 if there is a single
                      ///< host and a link without an eager channel
  kNegativeSegment,   ///< bytes
  kFlowsOpened,       ///< most flows of a link to another host
  kFlowsFixed,        ///< 1: all flows are to be used
  kLacksCosts,        ///< 1: a rank does not know the costs from the view before
  kInsideLatency,     ///< the costs
  kInsideTime,
  kBetweenLatency,
  kBetweenTime,
  kMostFlows,
  kNegativeLeastFlows,
  kLastAlgorithm,  ///< with the first rank that has it: see Asked
  kNegativeFirstAlgorithm,
  kNumbers,
};
using Word = std::array<std::int64_t, kNumbers>;

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
}

/// ELASTIC_ALGORITHM of a rank, 0 for none, and the rank. In order of the algorithms.
struct Asked {
  std::int64_t algorithm = 0;
  std::int64_t rank = 0;

  static constexpr std::int64_t kRanks = std::int64_t{1} << 32;

  explicit Asked(const std::optional<plan::AllreduceAlgorithm>& asked_for, int at)
      : algorithm(asked_for ? static_cast<std::int64_t>(*asked_for) + 1 : 0), rank(at) {}
  static Asked first(std::int64_t number) { return {-number / kRanks, -number % kRanks}; }
  static Asked last(std::int64_t number) { return {number / kRanks, kRanks - 1 - number % kRanks}; }
  std::int64_t first() const { return -(algorithm * kRanks + rank); }
  std::int64_t last() const { return algorithm * kRanks + kRanks - 1 - rank; }

  std::string text() const {
    const std::string name =
        algorithm == 0 ? "none"
                       : std::string("'") +
                             plan::name(static_cast<plan::AllreduceAlgorithm>(algorithm - 1)) + "'";
    return "rank " + std::to_string(rank) + " has " + name;
  }

 private:
  Asked(std::int64_t its, std::int64_t at) : algorithm(its), rank(at) {}
};

Word own_word(transport::Mesh& mesh, const Hosts& hosts, const NativeOptions& options,
              bool has_eager_channels) {
  std::uint64_t capacity = hosts.count() == 1 && !has_eager_channels ? 0 : ~std::uint64_t{0};
  for (const int peer : hosts.ranks(hosts.of(mesh.rank()))) {
    if (peer == mesh.rank() || !mesh.has_link(peer)) continue;
    capacity = std::min<std::uint64_t>(capacity, mesh.link(peer).capacity());
  }
  Word word{};
  word[kNegativeCapacity] = -number(capacity);
  word[kNegativeSegment] = -number(options.segment_bytes);
  word[kFlowsOpened] = number(flows_between_hosts(mesh, hosts));
  word[kFlowsFixed] = options.measures_flows ? 0 : 1;
  const auto costs = options.record ? options.record->costs() : std::nullopt;
  word[kLacksCosts] = costs ? 0 : 1;
  if (costs) {
    word[kInsideLatency] = number(costs->inside.latency_ns);
    word[kInsideTime] = number(costs->inside.ns_per_mib);
    word[kBetweenLatency] = number(costs->between.latency_ns);
    word[kBetweenTime] = number(costs->between.ns_per_mib);
    word[kMostFlows] = number(costs->flows);
    word[kNegativeLeastFlows] = -number(costs->flows);
  }
  const Asked asked(options.thresholds.algorithm, mesh.rank());
  word[kLastAlgorithm] = asked.last();
  word[kNegativeFirstAlgorithm] = asked.first();
  return word;
}

Status check_alike(const Word& of_all) {
  const Asked first = Asked::first(of_all[kNegativeFirstAlgorithm]);
  const Asked last = Asked::last(of_all[kLastAlgorithm]);
  if (first.algorithm == last.algorithm) return {};
  const auto& [one, other] = first.rank < last.rank ? std::tie(first, last) : std::tie(last, first);
  return Status(Code::kMismatch, "ELASTIC_ALGORITHM has to be the same on all ranks: " +
                                     one.text() + ", " + other.text());
}

/// The greatest costs that the ranks know from the view before; none if a joiner knows none. After
/// a loss the interrupted operation thus does not wait for measurements.
std::optional<plan::LinkCosts> known_costs(const Word& of_all, const Hosts& hosts) {
  // A rank with another number has measured in another view.
  if (of_all[kLacksCosts] != 0 || of_all[kMostFlows] != -of_all[kNegativeLeastFlows]) {
    return std::nullopt;
  }
  const auto known = [&](Number latency, Number time) {
    return plan::LinkCost{static_cast<std::uint64_t>(of_all[latency]),
                          static_cast<std::uint64_t>(of_all[time])};
  };
  plan::LinkCosts greatest{known(kInsideLatency, kInsideTime),
                           known(kBetweenLatency, kBetweenTime)};
  greatest.flows = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(of_all[kMostFlows]), 1,
                                             plan::kMostFlows);
  const bool lacks_inside = hosts.most_ranks() > 1 && greatest.inside.latency_ns == 0;
  const bool lacks_between = hosts.count() > 1 && greatest.between.latency_ns == 0;
  return lacks_inside || lacks_between ? std::nullopt : std::optional(greatest);
}

/// The costs that all ranks know already, or else measured ones. Sets the flows of the links.
Result<plan::LinkCosts> agree_on_costs(transport::Mesh& mesh, Executor& executor, PlanCache& plans,
                                       const Hosts& hosts, const Word& of_all,
                                       std::uint64_t flows_opened) {
  const bool fixed = of_all[kFlowsFixed] != 0;
  std::optional<plan::LinkCosts> costs = known_costs(of_all, hosts);
  if (!costs) {
    auto measured = measure_link_costs(executor, plans, mesh.rank(), hosts);
    if (measured.ok() && !fixed) {
      measured = measure_flows(executor, plans, mesh, hosts, measured.value(), flows_opened);
    }
    if (!measured.ok()) return measured;
    costs = measured.value();
  }
  if (fixed) costs->flows = std::max<std::uint64_t>(flows_opened, 1);
  use_flows(mesh, hosts, costs->flows);
  return *costs;
}

void warn_of_the_impossible(const ViewCapabilities& capabilities, const Hosts& hosts) {
  const auto& algorithm = capabilities.thresholds.algorithm;
  if (!algorithm || plan::can_do(*algorithm, hosts, capabilities.thresholds)) return;
  log::warn(
      "ELASTIC_ALGORITHM is '{}', which {} ranks on {} hosts cannot do with the links that they "
      "have: it is chosen by size",
      plan::name(*algorithm), hosts.size(), hosts.count());
}

Tuning::Link described(const plan::LinkCost& cost) {
  constexpr double kMib = 1 << 20;
  return {static_cast<double>(cost.latency_ns) / 1e3,
          cost.ns_per_mib > 0 ? kMib / static_cast<double>(cost.ns_per_mib) : 0};
}

}  // namespace

/// 1. Take the least capacity and segment, and the greatest number of flows, of all ranks.
/// 2. Check that ELASTIC_ALGORITHM is the same on all ranks.
/// 3. With a record, take the known link costs or measure them, and tune thresholds and segment.
/// Each step uses the same data on all ranks, so all ranks get the same result.
Result<ViewCapabilities> negotiate_capabilities(transport::Mesh& mesh, Executor& executor,
                                                PlanCache& plans, const Hosts& hosts,
                                                const NativeOptions& options,
                                                bool has_eager_channels) {
  // One flow until all ranks use the same number: a link is slow to find data on a flow that it
  // does not use itself.
  if (options.record && options.measures_flows) use_flows(mesh, hosts, 1);
  Word of_all = own_word(mesh, hosts, options, has_eager_channels);
  if (Status told = take_greatest(executor, plans, of_all); !told.ok()) return told;
  if (Status alike = check_alike(of_all); !alike.ok()) return alike;

  const auto capacity = static_cast<std::size_t>(-of_all[kNegativeCapacity]);
  ViewCapabilities capabilities;
  capabilities.flows_opened =
      std::min(static_cast<std::uint64_t>(of_all[kFlowsOpened]), plan::kMostFlows);
  capabilities.thresholds = options.thresholds;
  capabilities.thresholds.capacity = capacity;
  capabilities.segment_bytes = static_cast<std::size_t>(-of_all[kNegativeSegment]);
  capabilities.eager = hosts.count() == 1 && capacity > 0 && !capabilities.thresholds.algorithm;
  if (mesh.rank() == 0) warn_of_the_impossible(capabilities, hosts);
  if (!options.record || mesh.size() == 1) return capabilities;

  const auto costs =
      agree_on_costs(mesh, executor, plans, hosts, of_all, capabilities.flows_opened);
  if (!costs.ok()) return costs.status();
  capabilities.costs = costs.value();
  capabilities.segment_bytes =
      plan::tuned_segment(hosts, capabilities.costs, capabilities.segment_bytes);
  capabilities.thresholds = plan::tuned(hosts, capabilities.costs, capabilities.thresholds);
  return capabilities;
}

Tuning describe(const ViewCapabilities& capabilities, const Hosts& hosts, std::uint64_t generation,
                std::size_t most_eager_bytes) {
  Tuning tuning;
  tuning.generation = generation;
  tuning.inside_hosts = described(capabilities.costs.inside);
  tuning.between_hosts = described(capabilities.costs.between);
  tuning.segment_bytes = capabilities.segment_bytes;
  tuning.flows_opened = static_cast<int>(capabilities.flows_opened);
  tuning.flows_used =
      static_cast<int>(std::min(capabilities.costs.flows, capabilities.flows_opened));
  const auto add = [&](std::size_t up_to, const char* algorithm) {
    if (tuning.allreduce.empty() || tuning.allreduce.back().algorithm != algorithm) {
      tuning.allreduce.push_back({up_to, algorithm});
    }
    tuning.allreduce.back().up_to_bytes = up_to;
  };
  if (capabilities.eager) add(most_eager_bytes, "eager");
  const std::size_t most =
      std::max({capabilities.thresholds.doubling_bytes, capabilities.thresholds.one_shot_bytes,
                capabilities.thresholds.circulant_bytes});
  for (std::size_t bytes = 1024; bytes <= most; bytes *= 2) {
    if (capabilities.eager && bytes <= most_eager_bytes) continue;
    add(bytes, plan::name(plan::choose_allreduce(hosts, bytes, capabilities.thresholds)));
  }
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  add(kAny, plan::name(plan::choose_allreduce(hosts, kAny, capabilities.thresholds)));
  return tuning;
}

}  // namespace elastic::collectives
