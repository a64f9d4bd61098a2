#pragma once

#include <sys/types.h>

#include "base/unique_fd.hpp"

namespace elastic::testing {

/// Both ends of the connection that an elasticrun has with the server in it, taken out of the
/// process as it runs, to meddle with. Empty where this process may not look into others, or they
/// have no connection at the moment.
struct TakenSockets {
  UniqueFd launcher;
  UniqueFd server;

  static TakenSockets of(pid_t elasticrun, int server_port);
  explicit operator bool() const { return launcher && server; }
};

/// Whether this process may take descriptors out of those that it starts.
bool may_take_sockets_of(pid_t child);

}  // namespace elastic::testing
