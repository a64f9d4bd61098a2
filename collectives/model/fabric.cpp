#include "collectives/model/fabric.hpp"

#include <algorithm>

namespace elastic::model {
namespace {

/// Bytes of a frame beside the message's own. Also keeps an empty message from taking no time.
constexpr double kFrame = 64;

/// How often a byte goes from or to memory. Over TCP each end has the copy by the kernel (2) and
/// that by the network card (1); through shared memory each end has one copy. A reduction reads the
/// other operand, too.
constexpr double kTcpPasses = 3;
constexpr double kCopyPasses = 2;
constexpr double kReducePasses = 1;

/// Faster than anything: keeps rates finite where nothing limits them.
constexpr double kMostRate = 1e15;

}  // namespace

Fabric::Fabric(const Network& network, const plan::Hosts& hosts, int walked_hosts, int flows)
    : network_(network),
      hosts_(hosts),
      one_for_all_(walked_hosts == 1),
      flows_(flows),
      // Each thread moves flows of its own.
      threads_(std::clamp<double>(network.processor.threads, 1, std::max(flows, 1))) {
  const auto count = static_cast<std::size_t>(walked_hosts) * kParts;
  const auto ranks = static_cast<std::size_t>(hosts.size());
  resources_.resize(count + ranks, {.kind = Kind::kThread, .capacity = threads_});
  resources_.resize(count + 2 * ranks, {.kind = Kind::kThread, .capacity = 1});
  const Network::Line& line = network.line;
  // One machine has the cores of all hosts: each of them has its part, or host 0 has all.
  const double cores = network.hosts_share_cores && one_for_all_
                           ? network.host.cores / hosts.count()
                           : network.host.cores;
  for (std::size_t i = 0; i < count; i += kParts) {
    for (const std::size_t part : {kOut, kIn}) {
      resources_[i + part] = {.kind = Kind::kLine,
                              .capacity = line.rate,
                              .most_credit = line.burst,
                              .with_credit = line.burst_rate};
    }
    resources_[i + kCores] = {.kind = Kind::kCores, .capacity = cores};
    resources_[i + kMemory] = {.kind = Kind::kMemory, .capacity = network.host.memory_rate};
  }
}

Activity Fabric::message(int from, int to, bool inside_host, std::size_t bytes,
                         bool reduces) const {
  const Network::Processor& processor = network_.processor;
  const double all = static_cast<double>(bytes) + kFrame;
  const double share = static_cast<double>(bytes) / all;
  const double fixed = (inside_host ? processor.shared_message : processor.message) / all;
  Activity activity{.left = all, .most_rate = kMostRate};
  if (!inside_host) {
    activity.most_rate = std::min(kMostRate, network_.line.flow_rate * flows_);
    activity.use(of_host(from, kOut), 1);
    activity.use(of_host(to, kIn), 1);
  }
  const double receiving = inside_host ? (reduces ? 0 : processor.copy) : processor.receive;
  const double sending = inside_host ? processor.copy : processor.send;
  use_processor(activity, from, inside_host, fixed + share * sending);
  use_processor(activity, to, inside_host,
                fixed + share * (receiving + (reduces ? processor.reduce : 0)));
  const double passes = inside_host ? kCopyPasses : kTcpPasses;
  use_memory(activity, from, share * passes);
  use_memory(activity, to, share * (passes + (reduces ? kReducePasses : 0)));
  return activity;
}

Activity Fabric::reduction(int rank, std::size_t bytes) const {
  Activity activity{.left = static_cast<double>(bytes), .most_rate = kMostRate};
  use_processor(activity, rank, /*owner=*/true, network_.processor.reduce);
  use_memory(activity, rank, kCopyPasses + kReducePasses);
  return activity;
}

Activity Fabric::copy(int rank, std::size_t bytes) const {
  Activity activity{.left = static_cast<double>(bytes), .most_rate = kMostRate};
  use_processor(activity, rank, /*owner=*/true, network_.processor.copy);
  use_memory(activity, rank, kCopyPasses);
  return activity;
}

double Fabric::latency(bool inside_host) const {
  const Network::Host& host = network_.host;
  const int ranks = network_.hosts_share_cores ? hosts_.size() : hosts_.most_ranks();
  const double turns = std::max(ranks / host.cores - 1, 0.0);
  return (inside_host ? host.latency : network_.line.latency) + turns * host.turn;
}

std::int32_t Fabric::of_host(int rank, Part part) const {
  const bool of_machine = part == kCores && network_.hosts_share_cores;
  const int host = one_for_all_ || of_machine ? 0 : hosts_.of(rank);
  return static_cast<std::int32_t>(host * kParts + part);
}

std::int32_t Fabric::threads(int rank) const {
  return static_cast<std::int32_t>(resources_.size()) - 2 * hosts_.size() + rank;
}

/// `owner`: the work of the thread that runs the operation alone, as all is but moving flows.
void Fabric::use_processor(Activity& activity, int rank, bool owner, double per_byte) const {
  activity.use(threads(rank), per_byte);
  if (owner && threads_ > 1) activity.use(threads(rank) + hosts_.size(), per_byte);
  if (network_.host.cores < kUnlimited) activity.use(of_host(rank, kCores), per_byte);
}

void Fabric::use_memory(Activity& activity, int rank, double passes) const {
  if (network_.host.memory_rate < kUnlimited) activity.use(of_host(rank, kMemory), passes);
}

}  // namespace elastic::model
