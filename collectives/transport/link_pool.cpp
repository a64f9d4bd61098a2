#include "collectives/transport/link_pool.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "collectives/transport/descriptor_shortage.hpp"

namespace elastic::transport {

namespace {

std::size_t count(const std::vector<StreamPtr>& streams) {
  return static_cast<std::size_t>(
      std::ranges::count_if(streams, [](const StreamPtr& stream) { return stream != nullptr; }));
}

}  // namespace

void LinkPool::add(Arrival arrival) {
  if (arrival.lane >= lanes_ || arrival.stream >= arrival.streams) return;
  PeerSlots& peer = slots_[arrival.peer];
  peer.lanes.resize(lanes_);
  peer.fresh = true;
  Slot& slot = peer.lanes[arrival.lane];
  if (slot.link_id != arrival.link_id) {
    if (slot.link) slot.link->hang_up();
    const std::size_t most = slot.most;  // another try that comes no further is no progress
    slot = Slot{};
    slot.most = most;
    slot.link_id = arrival.link_id;
    slot.via = arrival.via;
    slot.generation = arrival.generation;
  }
  slot.streams.resize(arrival.streams);
  slot.streams[arrival.stream] = std::move(arrival.carrier);
  const std::size_t there = count(slot.streams);
  if (there > slot.most) {
    slot.most = there;
    peer.progress = Clock::now();
  }
  if (there < slot.streams.size()) return;
  slot.link =
      std::make_shared<Link>(std::move(slot.streams), "worker " + arrival.peer.substr(0, 8));
  slot.streams.clear();
  counted_.push_back(
      {slot.link->transport() == std::string_view("shm"), there, slot.link->bytes()});
}

LinkTraffic LinkPool::traffic() {
  LinkTraffic sum = ended_;
  std::erase_if(counted_, [&](const Counted& one) {
    const bool gone = one.count.use_count() == 1;  // read before the count, which is then final
    const std::uint64_t bytes = one.count->bytes();
    (one.shm ? sum.shm : sum.tcp) += bytes;
    if (gone) (one.shm ? ended_.shm : ended_.tcp) += bytes;
    return gone;
  });
  return sum;
}

std::size_t LinkPool::descriptors() const {
  std::size_t sum = 0;
  for (const Counted& one : counted_) {
    if (one.count.use_count() > 1) sum += one.streams * (one.shm ? kDescriptorsOfShm : 1);
  }
  return sum;
}

LinkPtr LinkPool::find(const std::string& peer, std::size_t lane) const {
  const auto found = slots_.find(peer);
  if (found == slots_.end() || lane >= found->second.lanes.size()) return nullptr;
  const LinkPtr& link = found->second.lanes[lane].link;
  return link && !link->broken() ? link : nullptr;
}

bool LinkPool::complete(const std::string& peer) const {
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    if (!find(peer, lane)) return false;
  }
  return true;
}

std::size_t LinkPool::streams(const std::string& peer, std::size_t lane) const {
  const auto found = slots_.find(peer);
  if (found == slots_.end() || lane >= found->second.lanes.size()) return 0;
  return count(found->second.lanes[lane].streams);
}

TimePoint LinkPool::progress(const std::string& peer) const {
  const auto found = slots_.find(peer);
  return found == slots_.end() ? TimePoint::min() : found->second.progress;
}

std::vector<LinkPtr> LinkPool::hand_out(const std::string& peer) {
  std::vector<LinkPtr> found;
  PeerSlots& slots = slots_[peer];
  slots.fresh = false;
  slots.lanes.resize(lanes_);
  for (Slot& slot : slots.lanes) {
    slot.used = true;
    found.push_back(slot.link);
  }
  return found;
}

LinkPtr LinkPool::hand_out(const std::string& peer, std::size_t lane) {
  PeerSlots& slots = slots_[peer];
  slots.lanes.resize(lanes_);
  slots.lanes[lane].used = true;
  return slots.lanes[lane].link;
}

void LinkPool::keep_only(const std::set<std::string>& peers) {
  for (auto peer = slots_.begin(); peer != slots_.end();) {
    const bool wanted = peers.contains(peer->first);
    if (!wanted && !peer->second.fresh) {
      peer = slots_.erase(peer);
      continue;
    }
    peer->second.fresh = false;
    peer->second.progress = TimePoint::min();
    for (Slot& slot : peer->second.lanes) {
      slot.most = 0;
      if (slot.via.empty() || peers.contains(slot.via)) continue;
      if (slot.link) slot.link->hang_up();
      slot = Slot{};
    }
    ++peer;
  }
}

void LinkPool::drop_old(const std::string& peer, std::uint64_t generation) {
  const auto found = slots_.find(peer);
  if (found == slots_.end()) return;
  for (Slot& slot : found->second.lanes) {
    if (!slot.used && slot.generation >= generation) continue;
    if (slot.link) slot.link->hang_up();
    slot = Slot{};
  }
}

void LinkPool::drop_dead(const std::string& peer) {
  for (Slot& slot : slots_[peer].lanes) {
    if (slot.link && (slot.link->broken() || slot.link->hung_up())) slot = Slot{};
  }
}

void LinkPool::drop_dead() {
  for (const auto& peer : slots_) drop_dead(peer.first);
  std::erase_if(slots_, [](const auto& peer) {
    return std::all_of(peer.second.lanes.begin(), peer.second.lanes.end(),
                       [](const Slot& slot) { return slot.link_id.empty(); });
  });
}

}  // namespace elastic::transport
