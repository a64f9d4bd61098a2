#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/secret.hpp"
#include "rendezvous/launcher/job_end.hpp"
#include "rendezvous/launcher/launch_options.hpp"

namespace elastic::hosts {

/// Runs a job on several hosts: its server, and an agent on each host, which is elasticrun --join
/// over ssh. A thin shell around HostSupervision.
///
/// Owned by the main thread, in which it also starts the agents: they die with it.
class HostLauncher {
 public:
  using Environment = std::map<std::string, std::string>;

  HostLauncher(launcher::LaunchOptions options, const Secret& secret, Environment environment);
  ~HostLauncher();

  /// Returns after the last agent has ended.
  launcher::JobEnd run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::hosts
