#pragma once

#include <map>
#include <string>
#include <vector>

#include "rendezvous/hosts/host_supervision.hpp"
#include "rendezvous/launcher/launch_options.hpp"

namespace elastic::hosts {

/// What is the same for the agents of all hosts.
struct AgentSetting {
  std::string elasticrun;      ///< path of this program: tried first on the other hosts, too
  std::string working_folder;  ///< where it exists there
  std::map<std::string, std::string> environment;
};

/// The command for sh on a host, which becomes the agent. It contains no secret.
std::string agent_script(const launcher::LaunchOptions& options, const AgentSetting& setting,
                         const std::string& server, const StartAgent& agent);

/// The arguments that run `script` on `host`: those of ssh, or of sh where the host is this one.
std::vector<std::string> agent_arguments(const launcher::HostsOptions& options,
                                         const std::string& host, bool local,
                                         const std::string& script);

/// The variables of --env. kInvalidArgument: one of these is not set here.
Result<std::map<std::string, std::string>> chosen_variables(
    const std::vector<std::string>& wanted, const std::map<std::string, std::string>& environment);

/// The variables that agents get: ELASTIC_... of this process but for those of a job, and those of
/// --env. kInvalidArgument: one of these is not set here.
Result<std::map<std::string, std::string>> environment_of_agents(
    const std::vector<std::string>& wanted, const std::map<std::string, std::string>& environment);

}  // namespace elastic::hosts
