// How a worker comes to its links and to its lanes' views: stands for transport::Linker and
// runtime::assemble.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "collectives/backend/native/native_backend.hpp"
#include "data_stream.hpp"
#include "model_worker.hpp"
#include "mutated_backend.hpp"
#include "oracle.hpp"

namespace elastic::simulation {

using namespace rendezvous;

namespace {

// The deadline of runtime::Control.
constexpr Milliseconds kLinkDeadline{5000};
constexpr unsigned kMostLooks = 100;

}  // namespace

void ModelWorker::make_members(const View& view) {
  auto members = std::make_shared<coordinator::Members>();
  auto ids = std::make_shared<std::vector<WorkerId>>();
  members->generation = view.generation;
  for (const Member& member : view.members) {
    if (member.incarnation == incarnation()) members->rank = members->size();
    members->incarnations.push_back(member.incarnation);
    members->synced.push_back(member.synced);
    ids->push_back(id_of(node_of(member.incarnation)));
  }
  members->ids = std::move(ids);
  members_ = std::move(members);
}

void ModelWorker::accept(transport::LinkPool::Arrival arrival) {
  // A task can be copied, a stream cannot.
  auto shared = std::make_shared<transport::LinkPool::Arrival>(std::move(arrival));
  process_.post([this, shared] { pool_.add(std::move(*shared)); });
}

/// Models transport::Linker::connect.
void ModelWorker::connect(const View& view) {
  next_ = view;
  if (still_to_freeze_ > 0) {
    for (const auto& lane : lanes_) lane->freeze();
    return;
  }
  link_until_ = context_.time.now() + kLinkDeadline;
  std::set<std::string> peers;
  for (const Member& member : view.members) {
    if (member.incarnation != incarnation()) peers.insert(member.incarnation);
  }
  pool_.keep_only(peers);
  pool_.drop_dead();
  for (const auto& pair : view.broken) {
    if (pair.one == incarnation()) pool_.drop_old(pair.other, view.generation);
    if (pair.other == incarnation()) pool_.drop_old(pair.one, view.generation);
  }
  try_to_link(++linking_);
}

/// Dials the missing peers. Between two workers, the one with the greater name dials.
void ModelWorker::try_to_link(std::uint64_t attempt) {
  if (attempt != linking_) return;
  const Member* missing = nullptr;
  for (const Member& member : next_.members) {
    if (member.incarnation == incarnation() || pool_.complete(member.incarnation)) continue;
    missing = &member;
    const Node peer = node_of(member.incarnation);
    if (incarnation() < member.incarnation || !context_.network.meet(process_.self(), peer) ||
        !context_.workers[peer]->answers())
      continue;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (pool_.find(member.incarnation, lane)) continue;
      auto streams = connect_data(context_.network, context_.chance, process_.self(), peer);
      const std::string id = incarnation() + "-" + std::to_string(context_.network.connections());
      context_.workers[peer]->accept(
          {incarnation(), lane, id, 0, 1, "", next_.generation, std::move(streams.second)});
      pool_.add(
          {member.incarnation, lane, id, 0, 1, "", next_.generation, std::move(streams.first)});
    }
  }
  if (missing == nullptr) {
    for (auto& links : links_) links.assign(next_.members.size(), nullptr);
    for (std::size_t rank = 0; rank < next_.members.size(); ++rank) {
      if (next_.members[rank].incarnation == incarnation()) continue;
      auto handed = pool_.hand_out(next_.members[rank].incarnation);
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        links_[lane][rank] = std::move(handed[lane]);
    }
    ++linking_;
    return participation_.on_linked(next_.generation);
  }
  if (context_.time.now() >= link_until_) {
    return participation_.on_unlinkable(next_.generation, missing->incarnation, "no answer");
  }
  process_.later(Milliseconds(0), Milliseconds(10), [this, attempt] { try_to_link(attempt); });
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

std::shared_ptr<coordinator::LaneView> ModelWorker::lane_view(const View& view, std::size_t lane) {
  auto made = std::make_shared<coordinator::LaneView>();
  made->members = members_;
  made->mesh = std::make_shared<transport::Mesh>(members_->rank, std::exchange(links_[lane], {}),
                                                 abort_events_[lane]);
  collectives::NativeOptions options;
  options.segment_bytes = context_.scenario.segment_bytes;
  options.record = record_;
  std::map<Node, int> first_of_host;
  for (const Member& member : view.members) {
    const int rank = static_cast<int>(options.hosts.size());
    const Node host = node_of(member.incarnation) % context_.scenario.hosts;
    options.hosts.push_back(first_of_host.try_emplace(host, rank).first->second);
  }
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
