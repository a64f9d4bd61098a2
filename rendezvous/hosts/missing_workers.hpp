#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::hosts {

/// What became of the workers without which a job ended, by the server's last word, where there are
/// fewer than the `began` ones of its beginning; otherwise empty.
std::string missing_workers(int began, const rendezvous::StatusReply& last);

/// Workers that were members at some time, by the server's last word.
int known_workers(const rendezvous::StatusReply& last);

}  // namespace elastic::hosts
