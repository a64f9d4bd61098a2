#include "runtime/view_links.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "collectives/plan/hosts.hpp"
#include "collectives/plan/neighbours.hpp"

namespace elastic::runtime {

namespace {

std::vector<const rendezvous::Member*> others(const rendezvous::View& view,
                                              const std::string& self) {
  std::vector<const rendezvous::Member*> found;
  for (const rendezvous::Member& member : view.members) {
    if (member.incarnation != self) found.push_back(&member);
  }
  return found;
}

/// The members that `self` is linked with from the start.
std::set<std::string> needed_at_once(const rendezvous::View& view, const std::string& self,
                                     int all_linked) {
  std::set<std::string> needed;
  const auto place = std::ranges::find(view.members, self, &rendezvous::Member::incarnation);
  if (links_all(view, all_linked) || place == view.members.end()) {
    for (const rendezvous::Member& member : view.members) needed.insert(member.incarnation);
    return needed;
  }
  const int rank = static_cast<int>(place - view.members.begin());
  for (const int peer : plan::neighbours(rank, plan::Hosts(hosts_of(view)))) {
    needed.insert(view.members[static_cast<std::size_t>(peer)].incarnation);
  }
  return needed;
}

}  // namespace

std::vector<int> hosts_of(const rendezvous::View& view) {
  std::vector<int> hosts;
  std::map<std::string, int> first;
  for (const rendezvous::Member& member : view.members) {
    const int rank = static_cast<int>(hosts.size());
    hosts.push_back(first.try_emplace(member.endpoints.host, rank).first->second);
  }
  return hosts;
}

bool admits(const rendezvous::View& view, const std::string& incarnation) {
  return std::ranges::find(view.joined, incarnation) != view.joined.end();
}

bool links_all(const rendezvous::View& view, int all_linked) {
  return view.members.size() <= static_cast<std::size_t>(all_linked);
}

transport::Peer peer_of(const rendezvous::Member& member) {
  const rendezvous::Endpoints& at = member.endpoints;
  return {member.incarnation, {at.host, at.tcp, at.local}};
}

std::vector<transport::Peer> peers_of(const rendezvous::View& view, const std::string& self,
                                      int all_linked) {
  std::vector<transport::Peer> peers;
  const std::set<std::string> needed = needed_at_once(view, self, all_linked);
  for (const rendezvous::Member* member : others(view, self)) {
    const bool renew = std::any_of(view.broken.begin(), view.broken.end(), [&](const auto& pair) {
      return (pair.one == self && pair.other == member->incarnation) ||
             (pair.other == self && pair.one == member->incarnation);
    });
    peers.push_back(peer_of(*member));
    peers.back().renew = renew;
    peers.back().at_once = needed.contains(member->incarnation);
  }
  return peers;
}

std::string peer_at(const rendezvous::View& view, const std::string& self, int index) {
  const auto peers = others(view, self);
  if (index < 0 || static_cast<std::size_t>(index) >= peers.size()) return {};
  return peers[static_cast<std::size_t>(index)]->incarnation;
}

}  // namespace elastic::runtime
