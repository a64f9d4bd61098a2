#pragma once

#include <string>

#include "base/clock.hpp"
#include "rendezvous/protocol/connection_file.hpp"

namespace elastic::launcher {

/// The contents of the file at `path`, as soon as the job's server has written it; blocks until
/// then. kUnavailable: there is no such file after `longest`. kInvalidArgument: it cannot be
/// trusted or read.
Result<rendezvous::JobContact> await_connection_file(const std::string& path, Milliseconds longest);

}  // namespace elastic::launcher
