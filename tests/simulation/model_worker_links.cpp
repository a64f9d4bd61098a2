// How a worker comes to its lanes' views: stands for runtime::ParticipationEffects and
// runtime::assemble.
#include <utility>

#include "collectives/backend/native/native_backend.hpp"
#include "model_worker.hpp"
#include "mutated_backend.hpp"
#include "runtime/view_links.hpp"

namespace elastic::simulation {

using namespace rendezvous;

namespace {

constexpr unsigned kMostLooks = 100;

}  // namespace

std::shared_ptr<const coordinator::Members> ModelWorker::members_in(const View& view) const {
  auto members = std::make_shared<coordinator::Members>();
  auto ids = std::make_shared<std::vector<WorkerId>>();
  members->generation = view.generation;
  for (const Member& member : view.members) {
    if (member.incarnation == incarnation()) members->rank = members->size();
    members->incarnations.push_back(member.incarnation);
    members->synced.push_back(member.synced);
    ids->push_back(id_of(node_of(member.incarnation)));
  }
  members->hosts = runtime::hosts_of(view);
  members->ids = std::move(ids);
  return members;
}

/// Models ParticipationEffects::connect.
void ModelWorker::connect(const View& view) {
  next_ = view;
  const bool is_late = context_.scenario.mutation == Mutation::kLateRoster;
  if (runtime::admits(view, incarnation()) && !is_late) {
    set_roster(runtime::roster_of(*members_in(view), 0));
  }
  if (still_to_freeze_ > 0) {
    for (const auto& lane : lanes_) lane->freeze();
    return;
  }
  linker_.connect(runtime::peers_of(view, incarnation(), context_.scenario.all_linked),
                  view.generation,
                  [this, view](Result<std::vector<ModelLinker::LinksOfPeer>> links) {
                    on_connected(view, std::move(links));
                  });
}

void ModelWorker::on_connected(const View& view,
                               Result<std::vector<ModelLinker::LinksOfPeer>> links) {
  if (links.ok()) {
    links_ = std::move(links).value();
    return participation_.on_linked(view.generation);
  }
  participation_.on_unlinkable(view.generation,
                               runtime::peer_at(view, incarnation(), links.status().peer()),
                               links.status().message());
}

void ModelWorker::watch_for_end(const Member& member) {
  look_for_end(node_of(member.incarnation), end_watches_, 0);
}

/// A process that has ended refuses connections, if they get through.
void ModelWorker::look_for_end(Node peer, std::uint64_t watch, unsigned looks) {
  if (watch != end_watches_ || looks == kMostLooks) return;
  process_.later(Milliseconds(1), Milliseconds(200), [this, peer, watch, looks] {
    if (watch != end_watches_) return;
    if (context_.network.meet(process_.self(), peer) && context_.workers[peer]->over()) {
      return participation_.on_ended(incarnation_of(peer));
    }
    look_for_end(peer, watch, looks + 1);
  });
}

/// Models runtime::assemble.
std::shared_ptr<coordinator::LaneView> ModelWorker::lane_view(const View& view, std::size_t lane) {
  std::vector<transport::LinkPtr> by_rank(view.members.size());
  std::size_t next = 0;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (static_cast<int>(rank) == members_->rank) continue;
    const ModelLinker::LinksOfPeer& of_peer = links_[next++];
    if (!of_peer.empty()) by_rank[rank] = of_peer[lane];
  }
  auto made = std::make_shared<coordinator::LaneView>();
  made->members = members_;
  made->all_linked = runtime::links_all(view, context_.scenario.all_linked);
  made->mesh = std::make_shared<transport::Mesh>(
      members_->rank, std::move(by_rank), abort_events_[lane],
      made->all_linked ? nullptr : linker_.source(members_->incarnations, lane, view.generation));
  collectives::NativeOptions options;
  options.segment_bytes = context_.scenario.segment_bytes;
  options.record = record_;
  options.hosts = runtime::hosts_of(view);
  const bool fenced = context_.scenario.mutation != Mutation::kDropFence;
  made->backend =
      collectives::make_native_backend(fenced ? view.generation : 1, made->mesh, options);
  const bool early_release = context_.scenario.mutation == Mutation::kEarlyRelease;
  const bool early_error = context_.scenario.mutation == Mutation::kEarlyError;
  if (early_release || early_error) {
    made->backend = settling_early(std::move(made->backend), early_release, early_error);
  }
  const LaneDecision& decision = view.lanes[lane];
  made->position = decision.position;
  made->handover = members_->handover_pairs(decision.holders, decision.takers);
  made->holders = members_->ranks_of(decision.holders);
  made->lost = decision.lost;
  return made;
}

}  // namespace elastic::simulation
