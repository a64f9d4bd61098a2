#include "rendezvous/hosts/agent_end.hpp"

#include "rendezvous/launcher/exit_code.hpp"

namespace elastic::hosts {

namespace exit_code = launcher::exit_code;

namespace {

/// Exit codes of sh and ssh; the agent's own are elasticrun's.
constexpr int kNotFound = 127;
constexpr int kSshFailed = 255;

/// As a program does that is no ssh. An elasticrun says why it ends, and under its name.
bool never_started(const AgentEnded& event, bool was_running) {
  const ExitStatus& status = event.status;
  return !was_running && !event.command.empty() && status.signal == 0 &&
         !event.last_line.starts_with("elasticrun");
}

}  // namespace

std::string reason_of_end(const AgentEnded& event, bool was_running) {
  const ExitStatus& status = event.status;
  if (status.signal == 0 && status.code == kSshFailed && was_running) {
    return "the connection was cut off";
  }
  const std::string last = event.last_line.empty() ? "" : ": " + event.last_line;
  if (status.signal == 0 && status.code == kSshFailed) {
    return "it cannot be reached, or the connection was cut off" + last;
  }
  if (status.signal == 0 && status.code == kNotFound) {
    return "there is no elasticrun in its PATH, nor where it is here" + last;
  }
  if (status.signal == 0 && status.code == exit_code::kNoServer) {
    return "it does not reach the job's server, which is on this machine: see --bind" + last;
  }
  if (status.signal == 0 && status.code == exit_code::kNotPrepared) {
    return "--prepare failed there";
  }
  if (status.signal == 0 && status.code == exit_code::kRefused)
    return "its elasticrun was refused" + last;
  if (never_started(event, was_running)) {
    return "the command '" + event.command + "' (--ssh) " + status.text() +
           ", and no elasticrun came from there" + last + "; try: " + event.command + " true";
  }
  return "its elasticrun " + status.text();  // which has said why
}

}  // namespace elastic::hosts
