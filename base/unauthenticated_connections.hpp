#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <boost/asio/ip/address.hpp>

namespace elastic {

/// The connections of one listener whose peers have not authenticated yet, and the choice of the
/// one that is closed when there are too many. So a listener never stops accepting: a peer that
/// knows the secret sends its first bytes at once, so a flood of connections can hold a place only
/// until the next connection comes.
///
/// The victim is the oldest silent connection of the origin that has the most silent ones; if
/// none is silent, the oldest of the origin that has the most. So no origin can take the places of
/// others.
///
/// Pure. Costs O(most) when it is full, otherwise O(log most). Belongs to the listener's thread.
class UnauthenticatedConnections {
 public:
  using Id = std::uint64_t;

  /// Holds at most `most` connections, at least one.
  explicit UnauthenticatedConnections(std::size_t most);
  /// Changes that limit; connections beyond it stay.
  void set_most(std::size_t most) { most_ = std::max<std::size_t>(most, 1); }

  struct Admission {
    Id admitted = 0;
    std::optional<Id> displaced;  ///< to be closed; it is not counted any more
  };
  /// A connection from `origin` was accepted: see origin_of.
  Admission admit(std::string origin);
  /// The first bytes of a connection have come. Without effect for one that is not counted.
  void heard(Id id);
  /// The connection has authenticated or is closed. Without effect for one that is not counted.
  void remove(Id id);

  std::size_t size() const { return connections_.size(); }

 private:
  struct One {
    std::string origin;
    bool silent = true;
  };
  std::map<Id, One>::iterator victim();

  std::size_t most_;
  Id last_ = 0;
  std::map<Id, One> connections_;  // oldest first
};

/// Has the kernel keep TCP connections back until their first bytes have come, for a second: most
/// silent ones then never reach the program.
void defer_accept(int listener);

/// The origin of an address: an IPv4 address, or the /64 network of an IPv6 address, of which one
/// machine has all.
std::string origin_of(const boost::asio::ip::address& address);

}  // namespace elastic
