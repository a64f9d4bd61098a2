#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "network.hpp"
#include "scenario.hpp"

namespace elastic::simulation {

/// The links between workers, one per lane for each two of them. They live on through changes of
/// the view, until they break.
class DataLinks {
 public:
  /// `on_lost(who, lane, peer)`: who's link broke.
  using OnLost = std::function<void(Node who, std::size_t lane, Node peer)>;

  DataLinks(Network& network, OnLost on_lost) : network_(network), on_lost_(std::move(on_lost)) {}

  bool up(Node who, std::size_t lane, Node peer) const {
    const Connection* link = links_[index(lane, who, peer)];
    return link != nullptr && link->up(who);
  }
  bool whole(Node a, Node b) const {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (!up(a, lane, b) || !up(b, lane, a)) return false;
    }
    return true;
  }
  /// Dials where there is no link, or only half of one. They must meet.
  void make(Node a, Node b) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (up(a, lane, b) && up(b, lane, a)) continue;
      for (const Node each : {a, b}) {
        if (!up(each, lane, each == a ? b : a)) continue;
        links_[index(lane, a, b)]->close(each);
        on_lost_(each, lane, each == a ? b : a);
      }
      links_[index(lane, a, b)] =
          &network_.connect(a, b, [this, lane, sum = a + b](Connection& /*link*/, Node who) {
            on_lost_(who, lane, sum - who);
          });
    }
  }
  void send(Node from, std::size_t lane, Node to, std::function<void()> deliver) {
    if (up(from, lane, to)) links_[index(lane, from, to)]->send(from, std::move(deliver));
  }
  /// `who` is over.
  void end(Node who) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (Node peer = 0; peer < kMostWorkers; ++peer) {
        if (peer != who && up(who, lane, peer)) links_[index(lane, who, peer)]->close(who);
      }
    }
  }

 private:
  static std::size_t index(std::size_t lane, Node a, Node b) {
    const Node low = a < b ? a : b;
    const Node high = a < b ? b : a;
    return (lane * kMostWorkers + low) * kMostWorkers + high;
  }

  Network& network_;
  const OnLost on_lost_;
  std::array<Connection*, kLanes * kMostWorkers * kMostWorkers> links_{};
};

}  // namespace elastic::simulation
