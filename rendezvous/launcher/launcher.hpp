#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/secret.hpp"
#include "rendezvous/launcher/job_end.hpp"
#include "rendezvous/launcher/launch_options.hpp"

namespace elastic::launcher {

/// Runs the workers of one job on this host, their output and signals; and the job's server, unless
/// it joins a job. A thin shell around Supervision.
///
/// Owned by the main thread, in which it also starts the workers: they die with it.
class Launcher {
 public:
  using Environment = std::map<std::string, std::string>;

  /// `program` is the path of the command's program. The environment is what workers inherit.
  Launcher(LaunchOptions options, const Secret& secret, std::string program,
           Environment environment);
  ~Launcher();

  /// Returns after the last worker has ended.
  JobEnd run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::launcher
