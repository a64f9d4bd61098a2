#include "network.hpp"

#include <algorithm>
#include <utility>

namespace elastic::simulation {

namespace {

/// The time after which a side takes a connection for dead on which nothing gets through.
constexpr Milliseconds kLeastTimeLimit{300};
constexpr Milliseconds kMostTimeLimit{3000};

}  // namespace

Connection::Connection(Network& network, Node a, Node b,
                       std::function<void(Connection&, Node)> on_lost)
    : network_(network), sides_{Side{a, b}, Side{b, a}}, on_lost_(std::move(on_lost)) {}

void Connection::send(Node from, std::function<void()> deliver) {
  Side& its = side(from);
  if (!its.up) return;
  its.sent.push_back(reset_ ? nullptr : std::move(deliver));
  its.latest = std::max(its.latest, network_.time_.now() + network_.some_delay());
  network_.time_.at(its.latest, [this, &its] { arrive(its); });
}

void Connection::arrive(Side& from) {
  ++from.waiting;
  deliver(from);
}

void Connection::deliver(Side& from) {
  while (from.waiting > 0 && network_.passes(from.self, from.peer)) {
    const std::function<void()> what = std::move(from.sent.front());
    from.sent.pop_front();
    --from.waiting;
    if (what && side(from.peer).up) what();
  }
}

void Connection::close(Node who) {
  Side& its = side(who);
  if (!its.up) return;
  send(who, [this, peer = its.peer] { lose(peer); });
  its.up = false;
}

void Connection::abort(Node who) {
  if (!side(who).up) return;
  for (auto& what : side(who).sent) what = nullptr;
  close(who);
}

void Connection::reset() {
  reset_ = true;
  for (Side& its : sides_) {
    for (auto& what : its.sent) what = nullptr;
    network_.time_.after(network_.some_delay(), [this, &its] { lose(its.self); });
  }
}

void Connection::lose(Node who) {
  Side& its = side(who);
  if (!its.up) return;
  abort(who);
  on_lost_(*this, who);
}

void Connection::on_cut() {
  for (const Side& its : sides_) {
    if (!its.up) continue;
    network_.time_.after(network_.chance_.between(kLeastTimeLimit, kMostTimeLimit), [this, &its] {
      if (!network_.meet(its.self, its.peer)) lose(its.self);
    });
  }
}

void Connection::on_healed() {
  for (Side& its : sides_) deliver(its);
}

Connection& Network::connect(Node a, Node b, std::function<void(Connection&, Node)> on_lost) {
  return *connections_.emplace_back(std::make_unique<Connection>(*this, a, b, std::move(on_lost)));
}

void Network::cut(Nodes from, Nodes to, Duration length) {
  const TimePoint until = time_.now() + length;
  cuts_.push_back({from, to, until});
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& each = *connections_[i];
    if (!meet(each.sides_[0].self, each.sides_[1].self)) each.on_cut();
  }
  time_.at(until, [this, until] {
    std::erase_if(cuts_, [&](const Cut& cut) { return cut.until <= until; });
    for (std::size_t i = 0; i < connections_.size(); ++i) connections_[i]->on_healed();
  });
}

void Network::end(Node who, bool unsent_is_lost) {
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    for (const Connection::Side& its : connections_[i]->sides_) {
      if (its.self != who) continue;
      unsent_is_lost ? connections_[i]->abort(who) : connections_[i]->close(who);
    }
  }
}

bool Network::passes(Node from, Node to) const {
  return std::none_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
    return contains(cut.from, from) && contains(cut.to, to);
  });
}

}  // namespace elastic::simulation
