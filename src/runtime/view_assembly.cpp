#include "runtime/view_assembly.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "collectives/transport/flow_count.hpp"

namespace elastic::runtime {

namespace {

/// Threads that move the bytes of large operations of `rank`.
std::size_t threads_of(int asked_for, const std::vector<int>& hosts, int rank) {
  if (asked_for > 0) return static_cast<std::size_t>(asked_for);
  const auto here = std::ranges::count(hosts, hosts[static_cast<std::size_t>(rank)]);
  return transport::threads_per_lane(transport::count_cores(), static_cast<std::size_t>(here));
}

}  // namespace

transport::LinkerOptions linker_options(const Identity& identity, const Options& options,
                                        std::shared_ptr<const transport::Arena> arena) {
  transport::LinkerOptions linker;
  linker.arena = std::move(arena);
  linker.job = identity.job;
  linker.secret = identity.secret;
  linker.encrypt = options.encrypt;
  linker.incarnation = identity.incarnation;
  linker.transport = options.transport;
  linker.bind_address = options.bind;
  linker.network = options.network;
  linker.ports = PortRange::parse(options.data_ports).value();  // checked with the other options
  linker.streams = options.tcp_streams;
  linker.congestion = options.tcp_congestion;
  linker.lanes = static_cast<int>(kLanes);
  linker.shm_ring_bytes = options.shm_ring_bytes;
  return linker;
}

rendezvous::StallLimits stall_limits(const Options& options) {
  return {static_cast<std::uint64_t>(options.stall_warning.count()),
          static_cast<std::uint64_t>(options.stall_timeout.count())};
}

Status failure_of(const rendezvous::Fail& fail) {
  const bool timed_out = fail.timed_out.value_or(false);
  const bool mismatch = fail.mismatch.value_or(false);
  return Status(mismatch      ? Code::kMismatch
                : fail.misfit ? Code::kRefused
                : timed_out   ? Code::kTimeout
                              : Code::kBelowMinimum,
                fail.reason);
}

rendezvous::Endpoints to_rendezvous(const transport::Endpoints& endpoints) {
  return {endpoints.host, endpoints.tcp, endpoints.local};
}

ViewSummary summarise(const rendezvous::View& view, const std::string& self) {
  auto members = std::make_shared<coordinator::Members>();
  auto ids = std::make_shared<std::vector<WorkerId>>();
  members->generation = view.generation;
  std::string my_host;
  for (const rendezvous::Member& member : view.members) {
    if (member.incarnation == self) {
      members->rank = members->size();
      my_host = member.endpoints.host;
    }
    members->incarnations.push_back(member.incarnation);
    members->synced.push_back(member.synced);
    ids->push_back(worker_id(member.incarnation));
  }
  members->ids = std::move(ids);
  members->hosts = hosts_of(view);

  ViewSummary summary;
  summary.admitted_at = view.admitted_at;
  summary.local_size = 0;
  for (std::size_t rank = 0; rank < view.members.size(); ++rank) {
    if (view.members[rank].endpoints.host != my_host) continue;
    if (static_cast<int>(rank) == members->rank) summary.local_rank = summary.local_size;
    ++summary.local_size;
  }
  summary.members = std::move(members);
  return summary;
}

Result<std::vector<std::shared_ptr<coordinator::LaneView>>> assemble(
    const rendezvous::View& view, const std::shared_ptr<const coordinator::Members>& members,
    const std::vector<transport::Linker::LinksOfPeer>& links, const LaneParts& parts) {
  const std::vector<int> hosts = hosts_of(view);
  const bool all = links_all(view, parts.all_linked);
  const std::size_t threads = threads_of(parts.tcp_threads, hosts, members->rank);
  std::vector<std::shared_ptr<coordinator::LaneView>> lane_views;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    std::vector<transport::LinkPtr> by_rank(view.members.size());
    std::size_t next = 0;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      if (static_cast<int>(rank) == members->rank) continue;
      const transport::Linker::LinksOfPeer& of_peer = links[next++];
      if (!of_peer.empty()) by_rank[rank] = of_peer[lane];
    }
    auto lane_view = std::make_shared<coordinator::LaneView>();
    lane_view->members = members;
    lane_view->all_linked = all;
    lane_view->mesh = std::make_shared<transport::Mesh>(
        members->rank, std::move(by_rank), parts.abort_events[lane],
        all ? nullptr : parts.sources(members->incarnations, lane, view.generation),
        transport::ThreadUse{.count = threads});
    auto backend =
        parts.backends.make(members->incarnations[static_cast<std::size_t>(members->rank)],
                            view.generation, lane, lane_view->mesh, hosts);
    if (!backend.ok()) return backend.status();
    lane_view->backend = std::move(backend).value();
    const rendezvous::LaneDecision& decision = view.lanes[lane];
    lane_view->position = decision.position;
    lane_view->handover = members->handover_pairs(decision.holders, decision.takers);
    lane_view->holders = members->ranks_of(decision.holders);
    lane_view->lost = decision.lost;
    lane_views.push_back(std::move(lane_view));
  }
  return lane_views;
}

WorkerId worker_id(const std::string& incarnation) {
  return std::strtoull(incarnation.substr(0, 16).c_str(), nullptr, 16);
}

}  // namespace elastic::runtime
