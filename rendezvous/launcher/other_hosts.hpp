#pragma once

#include "rendezvous/launcher/supervision.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::launcher {

/// `launcher`: the number of this host's. A server that does not know the members yet may have some
/// elsewhere.
OtherHosts other_hosts(const rendezvous::StatusReply& status, int launcher);

}  // namespace elastic::launcher
