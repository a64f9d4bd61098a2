#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/status.hpp"
#include "rendezvous/launcher/console.hpp"
#include "rendezvous/launcher/exit_status.hpp"
#include "rendezvous/launcher/worker_output.hpp"
#include "rendezvous/launcher/worker_process.hpp"

namespace elastic::launcher {

/// The command of --prepare, which runs before this host takes part in the job. Its lines go to the
/// console as a worker's do. At the end of the object all its processes are gone.
///
/// Owned by the launcher's thread.
class Preparation {
 public:
  Preparation(std::string prefix, Console& console)
      : output_(std::move(prefix), console.output(), console.errors()) {}

  /// `command`: for sh. `environment`: "NAME=value".
  Status start(boost::asio::io_context& io, const std::string& command,
               std::vector<std::string> environment, int guardian_pipe);
  /// How it ended; nothing while it runs.
  std::optional<ExitStatus> collect() { return process_->collect(); }

 private:
  WorkerOutput output_;
  std::shared_ptr<WorkerProcess> process_;
};

}  // namespace elastic::launcher
