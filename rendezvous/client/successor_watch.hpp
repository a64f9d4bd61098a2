#pragma once

#include <memory>

#include "rendezvous/client/dial.hpp"

namespace elastic::rendezvous {

/// Looks whether another server has taken over from the one of a connection that still seems to be
/// there: a process that hangs, or a host that is cut off, does not close its connections. Every
/// two seconds the other addresses are dialed, at which no standby listens; where a server answers,
/// the connection is aborted, and its owner connects again. Nothing where there is one address.
class SuccessorWatch {
 public:
  SuccessorWatch(Destination server, std::shared_ptr<Connection> connection);
  ~SuccessorWatch();
  SuccessorWatch(const SuccessorWatch&) = delete;
  SuccessorWatch& operator=(const SuccessorWatch&) = delete;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::rendezvous
