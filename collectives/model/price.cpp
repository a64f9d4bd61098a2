#include "collectives/model/price.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/model/plan_walk.hpp"
#include "collectives/plan/allreduce_way.hpp"
#include "collectives/plan/barrier.hpp"
#include "collectives/plan/flows.hpp"
#include "collectives/plan/make_allreduce.hpp"
#include "collectives/transport/flow_count.hpp"
#include "elastic/options.hpp"

namespace elastic::model {
namespace {

using plan::AllreduceAlgorithm;

/// Calls that count, where bursts let some pass faster than others.
constexpr int kCallsCounted = 4;

/// Calls until the bursts of both ends of a line have been used up.
int calls_before(const Network& network, std::size_t bytes) {
  const double calls =
      4 * network.line.burst / static_cast<double>(std::max<std::size_t>(bytes, 1));
  return network.line.burst > 0 ? static_cast<int>(std::clamp(calls, 2.0, 64.0)) : 0;
}

/// The library's rings in shared memory hold more than any threshold asks for.
constexpr std::size_t kRingCapacity = std::size_t{4} << 20;

constexpr AllreduceAlgorithm kAll[] = {
    AllreduceAlgorithm::kOneShot,  AllreduceAlgorithm::kDoubling,
    AllreduceAlgorithm::kTwoShot,  AllreduceAlgorithm::kTwoRankExchange,
    AllreduceAlgorithm::kRing,     AllreduceAlgorithm::kHierarchical,
    AllreduceAlgorithm::kCirculant};

/// With more ranks, all sending to one of them at once would lose packets in the switch, which is
/// not modelled.
constexpr int kMostRanksForDirect = 16;

plan::LinkCost cost_of(double latency, double rate) {
  constexpr double kNano = 1e9;
  return {static_cast<std::uint64_t>(latency * kNano),
          static_cast<std::uint64_t>(static_cast<double>(plan::kMib) / rate * kNano)};
}

bool is_zero_copy(const Job& job, std::size_t bytes) {
  return bytes >= plan::limits_for(job.hosts.size(), {}, job.thresholds.algorithm).zero_copy_from;
}

/// The fewest flows that are hardly slower than all of them: `plan::choose_flows`.
int useful_flows(const Network& network, const plan::Hosts& hosts, int opened) {
  std::vector<plan::FlowTime> times;
  while (const auto flows = plan::next_flows(times, static_cast<std::uint64_t>(opened))) {
    const auto costs = link_costs(network, hosts, static_cast<int>(flows));
    times.push_back({flows, costs.between.of(plan::kMib)});
  }
  return static_cast<int>(plan::choose_flows(times).flows);
}

}  // namespace

plan::LinkCosts link_costs(const Network& network, const plan::Hosts& hosts, int flows) {
  const Network::Processor& processor = network.processor;
  // The library's messages of 64 KiB pass as a burst.
  constexpr double kMeasured = 64 * 1024;
  const Network::Line& line = network.line;
  const double share = (line.burst >= kMeasured ? line.burst_rate : line.rate) / hosts.most_ranks();
  const double threads = std::clamp<double>(processor.threads, 1, flows);
  const double moving = threads / (processor.send + processor.receive);
  plan::LinkCosts costs;
  if (hosts.most_ranks() > 1) {
    costs.inside = cost_of(network.host.latency + 2 * processor.shared_message,
                           std::min(1 / (2 * processor.copy), network.host.memory_rate / 2));
  }
  if (hosts.count() > 1) {
    costs.between = cost_of(network.line.latency + 2 * processor.message,
                            std::min({share, moving, network.line.flow_rate * flows}));
  }
  costs.flows = static_cast<std::uint64_t>(flows);
  return costs;
}

Job tuned_job(const Network& network, plan::Hosts hosts, int flows) {
  if (flows == 0) {
    const auto here = static_cast<std::size_t>(hosts.most_ranks());
    const auto links = static_cast<std::size_t>(hosts.size()) - here;
    const auto opened = transport::flows_per_link({here, here, links}, ~std::size_t{0});
    flows = useful_flows(network, hosts, static_cast<int>(opened));
  }
  Job job{.hosts = std::move(hosts), .flows = flows, .thresholds = {.capacity = kRingCapacity}};
  const plan::LinkCosts costs = link_costs(network, job.hosts, flows);
  job.thresholds = plan::tuned(job.hosts, costs, job.thresholds);
  job.segment_bytes = plan::tuned_segment(job.hosts, costs, Options{}.segment_bytes);
  return job;
}

AllreduceAlgorithm chosen(const Job& job, std::size_t bytes) {
  return is_zero_copy(job, bytes) ? plan::choose_large_allreduce(job.hosts, bytes, job.thresholds)
                                  : plan::choose_allreduce(job.hosts, bytes, job.thresholds);
}

AllreduceAlgorithm cheapest(const Network& network, const Job& job, plan::Elements elements) {
  std::optional<AllreduceAlgorithm> best;
  double least = kUnlimited;
  for (const AllreduceAlgorithm algorithm : kAll) {
    const bool direct =
        algorithm == AllreduceAlgorithm::kOneShot || algorithm == AllreduceAlgorithm::kTwoShot;
    if (!plan::can_do(algorithm, job.hosts, job.thresholds)) continue;
    if (direct && job.hosts.size() > kMostRanksForDirect) continue;
    const double seconds = price(network, job, algorithm, elements).seconds;
    if (seconds >= least) continue;
    least = seconds;
    best = algorithm;
  }
  return *best;
}

Price price(const Network& network, const Job& job, AllreduceAlgorithm algorithm,
            plan::Elements elements) {
  std::vector<PlanOf> plans{[&](int rank) {
    return plan::make_allreduce(algorithm, rank, job.hosts, elements, job.segment_bytes,
                                job.thresholds.exchange_segment_bytes);
  }};
  if (is_zero_copy(job, elements.count * elements.bytes) && plan::is_large(algorithm)) {
    plans.emplace_back(
        [&](int rank) { return plan::dissemination_barrier(rank, job.hosts.size()); });
  }
  PlanWalk walk(network, job.hosts, job.flows, plans);
  const int before = calls_before(network, elements.count * elements.bytes);
  const int counted = network.line.burst > 0 ? kCallsCounted : 1;
  const std::vector<double> ends = walk.run(before + counted);
  const double begin = before > 0 ? ends[static_cast<std::size_t>(before) - 1] : 0;
  return {.seconds = (ends.back() - begin) / counted,
          .line = walk.busy(Fabric::Kind::kLine),
          .thread = walk.busy(Fabric::Kind::kThread),
          .cores = walk.busy(Fabric::Kind::kCores),
          .memory = walk.busy(Fabric::Kind::kMemory)};
}

}  // namespace elastic::model
