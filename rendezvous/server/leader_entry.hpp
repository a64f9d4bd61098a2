#pragma once

#include <string>

#include "base/secret.hpp"
#include "base/status.hpp"

namespace elastic::rendezvous {

/// The value of the leader's key in the store, by which the other servers know the one that leads.
struct LeaderEntry {
  std::string address;
  std::string fingerprint;  ///< of the job's secret

  friend bool operator==(const LeaderEntry&, const LeaderEntry&) = default;
};

/// JSON, and back; empty fields where it is something else.
std::string text_of(const LeaderEntry& entry);
LeaderEntry parse_leader_entry(const std::string& text);

/// Tells whether two servers have the same secret, and nothing about the secret itself: an HMAC.
Result<std::string> secret_fingerprint(const Secret& secret);

}  // namespace elastic::rendezvous
