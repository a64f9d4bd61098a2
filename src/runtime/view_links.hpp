#pragma once

#include <string>
#include <vector>

#include "collectives/transport/peer.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::runtime {

// Which links a worker makes for a view, and when. Pure: the simulator uses it as it is.

/// For each rank, the first rank on its host.
std::vector<int> hosts_of(const rendezvous::View& view);
/// Whether the view makes this worker a member, which it was not before.
bool admits(const rendezvous::View& view, const std::string& incarnation);
/// Whether every pair of members is linked before the view comes into force.
bool links_all(const rendezvous::View& view, int all_linked);

transport::Peer peer_of(const rendezvous::Member& member);
/// All members but `self`, in rank order. With more than `all_linked` members those are linked at
/// once that the usual operations need.
std::vector<transport::Peer> peers_of(const rendezvous::View& view, const std::string& self,
                                      int all_linked);
/// The incarnation of the `index`-th of `peers_of`; empty if there is none.
std::string peer_at(const rendezvous::View& view, const std::string& self, int index);

}  // namespace elastic::runtime
