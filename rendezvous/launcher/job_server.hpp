#pragma once

#include <memory>
#include <string>

#include "base/handshake.hpp"
#include "base/status.hpp"
#include "rendezvous/launcher/launch_options.hpp"

namespace elastic::launcher {

/// The job's rendezvous server, on a thread of its own in this process. Owned by the launcher's
/// thread.
class JobServer {
 public:
  JobServer();
  ~JobServer();

  Status start(const LaunchOptions& options, const Secret& secret);
  /// "host:port" for the workers of this machine.
  const std::string& address() const;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
  std::string address_;
};

}  // namespace elastic::launcher
