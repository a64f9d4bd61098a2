#include "collectives/backend/native/view_capabilities.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "collectives/backend/native/link_costs.hpp"
#include "collectives/backend/native/link_flows.hpp"
#include "collectives/plan/flows.hpp"

namespace elastic::collectives {
namespace {

using plan::Hosts;

/// The capabilities of one rank, as it sends them to the others.
struct Word {
  std::uint64_t capacity = 0;  ///< the least of its links inside its host, in bytes; 0 if there is
                               ///< a single host and a link without an eager channel
  std::uint64_t segment_bytes = 0;
  std::uint64_t algorithm = 0;     ///< ELASTIC_ALGORITHM; 0: none
  std::uint64_t flows_opened = 0;  ///< the most flows of a link to another host
  std::uint64_t flows_fixed = 0;   ///< 1: all flows are to be used
  std::uint64_t knows_costs = 0;   ///< 1: it knows `costs` from the view before
  plan::LinkCosts costs;
};

std::uint64_t number_of(const std::optional<plan::AllreduceAlgorithm>& algorithm) {
  return algorithm ? static_cast<std::uint64_t>(*algorithm) + 1 : 0;
}

std::string asked_for(std::uint64_t algorithm) {
  if (algorithm == 0) return "none";
  return std::string("'") + plan::name(static_cast<plan::AllreduceAlgorithm>(algorithm - 1)) + "'";
}

Word own_word(transport::Mesh& mesh, const Hosts& hosts, const NativeOptions& options,
              bool has_eager_channels) {
  Word word;
  word.capacity = hosts.count() == 1 && !has_eager_channels ? 0 : ~std::uint64_t{0};
  for (const int peer : hosts.ranks(hosts.of(mesh.rank()))) {
    if (peer == mesh.rank() || !mesh.has_link(peer)) continue;
    word.capacity = std::min<std::uint64_t>(word.capacity, mesh.link(peer).capacity());
  }
  word.segment_bytes = options.segment_bytes;
  word.algorithm = number_of(options.thresholds.algorithm);
  word.flows_opened = flows_between_hosts(mesh, hosts);
  word.flows_fixed = options.measures_flows ? 0 : 1;
  if (const auto costs = options.record ? options.record->costs() : std::nullopt) {
    word.knows_costs = 1;
    word.costs = *costs;
  }
  return word;
}

Status check_alike(const std::vector<Word>& words) {
  const auto other = std::find_if(words.begin(), words.end(), [&](const Word& word) {
    return word.algorithm != words.front().algorithm;
  });
  if (other == words.end()) return {};
  return Status(Code::kMismatch, "ELASTIC_ALGORITHM has to be the same on all ranks: rank 0 has " +
                                     asked_for(words.front().algorithm) + ", rank " +
                                     std::to_string(other - words.begin()) + " has " +
                                     asked_for(other->algorithm));
}

/// The greatest costs that the ranks know from the view before; none if a joiner knows none. After
/// a loss the interrupted operation thus does not wait for measurements.
std::optional<plan::LinkCosts> known_costs(const std::vector<Word>& words, const Hosts& hosts) {
  plan::LinkCosts greatest;
  greatest.flows = std::clamp<std::uint64_t>(words.front().costs.flows, 1, plan::kMostFlows);
  for (const Word& word : words) {
    // A rank with another number has measured in another view.
    if (word.knows_costs == 0 || word.costs.flows != words.front().costs.flows) return std::nullopt;
    greatest.inside = plan::greater(greatest.inside, word.costs.inside);
    greatest.between = plan::greater(greatest.between, word.costs.between);
  }
  const bool lacks_inside = hosts.most_ranks() > 1 && greatest.inside.latency_ns == 0;
  const bool lacks_between = hosts.count() > 1 && greatest.between.latency_ns == 0;
  return lacks_inside || lacks_between ? std::nullopt : std::optional(greatest);
}

/// The costs that all ranks know already, or else measured ones. Sets the flows of the links.
Result<plan::LinkCosts> agree_on_costs(transport::Mesh& mesh, Executor& executor, PlanCache& plans,
                                       const Hosts& hosts, const std::vector<Word>& words,
                                       std::uint64_t flows_opened) {
  const bool fixed = std::any_of(words.begin(), words.end(),
                                 [](const Word& word) { return word.flows_fixed != 0; });
  std::optional<plan::LinkCosts> costs = known_costs(words, hosts);
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

/// 1. Exchange the capabilities of all ranks by an allgather.
/// 2. Check that ELASTIC_ALGORITHM is the same on all ranks.
/// 3. Take the least capacity and segment, and the greatest number of flows.
/// 4. With a record, take the known link costs or measure them, and tune thresholds and segment.
/// Each step uses the same data on all ranks, so all ranks get the same result.
Result<ViewCapabilities> negotiate_capabilities(transport::Mesh& mesh, Executor& executor,
                                                PlanCache& plans, const Hosts& hosts,
                                                const NativeOptions& options,
                                                bool has_eager_channels) {
  // One flow until all ranks use the same number: a link is slow to find data on a flow that it
  // does not use itself.
  if (options.record && options.measures_flows) use_flows(mesh, hosts, 1);
  std::vector<Word> words(static_cast<std::size_t>(mesh.size()));
  words[static_cast<std::size_t>(mesh.rank())] = own_word(mesh, hosts, options, has_eager_channels);
  const Status told =
      executor.run_alone(plans.small_allgather(sizeof(Word)),
                         PlanBuffers::in_place(reinterpret_cast<std::byte*>(words.data())));
  if (!told.ok()) return told;
  if (Status alike = check_alike(words); !alike.ok()) return alike;

  std::uint64_t capacity = ~std::uint64_t{0};
  std::uint64_t segment = ~std::uint64_t{0};
  std::uint64_t opened = 0;
  for (const Word& word : words) {
    capacity = std::min(capacity, word.capacity);
    segment = std::min(segment, word.segment_bytes);
    opened = std::max(opened, word.flows_opened);
  }
  ViewCapabilities capabilities;
  capabilities.flows_opened = std::min(opened, plan::kMostFlows);
  capabilities.thresholds = options.thresholds;
  capabilities.thresholds.capacity = static_cast<std::size_t>(capacity);
  capabilities.segment_bytes = static_cast<std::size_t>(segment);
  capabilities.eager = hosts.count() == 1 && capacity > 0 && !capabilities.thresholds.algorithm;
  if (mesh.rank() == 0) warn_of_the_impossible(capabilities, hosts);
  if (!options.record || mesh.size() == 1) return capabilities;

  const auto costs = agree_on_costs(mesh, executor, plans, hosts, words, capabilities.flows_opened);
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
