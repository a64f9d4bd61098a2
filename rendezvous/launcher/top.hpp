#pragma once

#include <functional>

#include "base/status.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::launcher {

/// Shows a job on stdout, once a second, until it has ended; on a terminal each frame in place of
/// the one before. `once`: one frame. `ask` asks for the job's status; kDone says that the job is
/// gone. \returns ok, or the error of `ask`.
Status show_top(const std::function<Result<rendezvous::StatusReply>()>& ask, bool once);

}  // namespace elastic::launcher
