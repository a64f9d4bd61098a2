#include "rendezvous/launcher/exit_status.hpp"

#include <signal.h>
#include <string.h>

#include <sys/wait.h>

namespace elastic::launcher {

ExitStatus ExitStatus::from_wait(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.code = 0, .signal = WTERMSIG(wait_status)};
  return {.code = WEXITSTATUS(wait_status), .signal = 0};
}

bool ExitStatus::killed() const {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
         signal == SIGQUIT;
}

std::string ExitStatus::text() const {
  if (signal == 0) return "exited with code " + std::to_string(code);
  const char* described = ::sigdescr_np(signal);
  return "died of signal " + std::to_string(signal) + " (" +
         (described != nullptr ? described : "unknown") + ")";
}

}  // namespace elastic::launcher
