#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::launcher {

/// A job's status for people: a headline, then a line for every member and joiner.
std::string status_table(const rendezvous::StatusReply& status);

}  // namespace elastic::launcher
