#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "chance.hpp"
#include "nodes.hpp"
#include "virtual_time.hpp"

namespace elastic::simulation {

class Network;

/// A TCP connection between two nodes: what one side sends comes in order, a little later, unless
/// the network is cut: then it waits, until the cut ends or a side gives the connection up, each
/// after a time of its own. Different connections keep no order among each other.
class Connection {
 public:
  /// `on_lost(connection, node)`: it is gone as `node` sees it, and not by its own doing.
  Connection(Network& network, Node a, Node b, std::function<void(Connection&, Node)> on_lost);

  bool up(Node who) const { return side(who).up; }
  Node other(Node who) const { return side(who).peer; }
  /// `deliver` is what happens at the other side.
  void send(Node from, std::function<void()> deliver);
  /// `who` ends it; what it sent before still comes.
  void close(Node who);
  /// `who` is gone, and with it what it sent and has not arrived.
  void abort(Node who);
  /// Something in between resets it: what is under way is lost, and both sides learn of it.
  void reset();

 private:
  friend class Network;

  struct Side {
    Node self = 0;
    Node peer = 0;
    bool up = true;
    TimePoint latest{};                        ///< when the last thing sent from here arrives
    std::deque<std::function<void()>> sent{};  ///< and not delivered yet; null for what is lost
    std::size_t waiting = 0;                   ///< the first so many have come as far as the cut
  };
  Side& side(Node who) { return sides_[sides_[0].self == who ? 0 : 1]; }
  const Side& side(Node who) const { return sides_[sides_[0].self == who ? 0 : 1]; }
  void arrive(Side& from);
  void deliver(Side& from);
  void lose(Node who);
  void on_cut();
  void on_healed();

  Network& network_;
  std::array<Side, 2> sides_;
  bool reset_ = false;
  const std::function<void(Connection&, Node)> on_lost_;
};

/// Which nodes reach each other, and all connections there ever were.
class Network {
 public:
  Network(VirtualTime& time, Chance& chance, Milliseconds delay)
      : time_(time), chance_(chance), delay_(delay) {}

  Connection& connect(Node a, Node b, std::function<void(Connection&, Node)> on_lost);
  /// For `length` nothing gets from any node of `from` to one of `to`.
  void cut(Nodes from, Nodes to, Duration length);

  /// `who` is over: its connections end, and what it sent last may be lost with them.
  void end(Node who, bool unsent_is_lost);
  std::size_t connections() const { return connections_.size(); }

  bool passes(Node from, Node to) const;
  bool meet(Node a, Node b) const { return passes(a, b) && passes(b, a); }
  Duration some_delay() { return chance_.between(Milliseconds(0), delay_); }

 private:
  friend class Connection;

  struct Cut {
    Nodes from{};
    Nodes to{};
    TimePoint until{};
  };

  VirtualTime& time_;
  Chance& chance_;
  const Milliseconds delay_;  // the longest
  std::vector<Cut> cuts_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace elastic::simulation
