#pragma once

#include <cstddef>
#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::monitoring {

/// The progress that the member of `rank` has last reported; of a server that does not tell it,
/// what the view says.
rendezvous::StatusReply::Progress progress_of(const rendezvous::StatusReply& status,
                                              std::size_t rank);

/// The states of docs/status.md: "synced", "member", "disconnected" or "ended".
const char* state_of(const rendezvous::StatusReply& status,
                     const rendezvous::StatusReply::Progress& member);
/// "preparing", "joining" or "waiting".
const char* state_of(const rendezvous::StatusReply::Waiting& joiner);

/// A line for each host in quarantine: for how long, and why.
std::string quarantine_lines(const rendezvous::StatusReply& status);

/// The name of the member's host: that of its launcher, by which the host is drained and pardoned,
/// or the first part of the machine's identity.
std::string host_of(const rendezvous::StatusReply& status, const rendezvous::Member& member);

}  // namespace elastic::monitoring
