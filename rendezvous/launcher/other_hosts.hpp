#pragma once

#include "rendezvous/protocol/messages.hpp"

namespace elastic::launcher {

/// Whether members on other hosts would go on with the job without those of this one, whose
/// launcher's number is `launcher`. Those of hosts whose workers are to leave as well do not count.
/// A server that does not know the members yet may have some elsewhere.
bool others_go_on(const rendezvous::StatusReply& status, int launcher);

}  // namespace elastic::launcher
