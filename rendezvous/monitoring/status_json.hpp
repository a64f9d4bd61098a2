#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::monitoring {

/// A job's status as one JSON object on one line; docs/status.md has the fields.
std::string status_json(const rendezvous::StatusReply& status);

}  // namespace elastic::monitoring
