#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/handshake.hpp"
#include "base/status.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// Asks a job's server something, as `elasticrun ctl` does, and waits for the answer. `encrypt`: as
/// the server does. kUnavailable: no answer from `address` within `timeout`. kRefused: the
/// server said no.
Result<Message> request(const std::string& address, const std::string& job, const Secret& secret,
                        const Message& message, Milliseconds timeout, bool encrypt = false);

}  // namespace elastic::rendezvous
