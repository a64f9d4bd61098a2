#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/handshake.hpp"
#include "base/status.hpp"
#include "rendezvous/launcher/job_file.hpp"
#include "rendezvous/launcher/launch_options.hpp"
#include "rendezvous/protocol/connection_file.hpp"

namespace elastic::launcher {

/// The job's rendezvous server, on a thread of its own in this process, and the files by which
/// `elasticrun ctl` and the other tasks of a step of Slurm's find it. Owned by the launcher's
/// thread.
class JobServer {
 public:
  JobServer();
  ~JobServer();

  Status start(const LaunchOptions& options, const Secret& secret,
               const std::map<std::string, std::string>& environment);
  /// "host:port" for the workers of this machine.
  const std::string& address() const;
  /// For the user: where the job is shown over HTTP; empty without --http.
  std::string shown_at() const;

 private:
  class Thread;
  Status share(const LaunchOptions& options, const Secret& secret);

  std::unique_ptr<Thread> thread_;
  std::string address_;
  std::optional<JobFile> job_file_;
  std::optional<rendezvous::ConnectionFile> shared_file_;
};

}  // namespace elastic::launcher
