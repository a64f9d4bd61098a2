#pragma once

#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "rendezvous/launcher/exit_status.hpp"

namespace elastic::launcher {

/// A command for sh.
struct Script {
  std::string text;
  std::vector<std::string> environment;  ///< "NAME=value"
  int guardian_pipe = -1;
};

/// A script that has ended, and what it wrote; no more than a MiB of each.
struct ScriptEnd {
  ExitStatus status;
  std::string output;
  std::string errors;
};

/// Runs a script, and kills all that it leaves behind. kUnavailable: it cannot be started, or takes
/// longer than `limit` and was killed.
boost::asio::awaitable<Result<ScriptEnd>> run_script(boost::asio::io_context& io, Script script,
                                                     Milliseconds limit);

}  // namespace elastic::launcher
