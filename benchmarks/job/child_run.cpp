#include "benchmarks/job/child_run.hpp"

#include <cerrno>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/unique_fd.hpp"

namespace elastic::bench {

namespace {

constexpr std::size_t kLinesShown = 20;
constexpr int kNotStarted = 127;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (const auto& text : texts) made.push_back(const_cast<char*>(text.c_str()));
  made.push_back(nullptr);
  return made;
}

// Runs in the child between fork and exec, where only async-signal-safe calls are allowed.
[[noreturn]] void start(char** argv, int output) noexcept {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv(argv[0], argv);
  ::_exit(kNotStarted);
}

std::string last_lines(const std::filesystem::path& file) {
  std::ifstream input(file);
  std::deque<std::string> lines;
  for (std::string line; std::getline(input, line);) {
    lines.push_back("  " + line + "\n");
    if (lines.size() > kLinesShown) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// Returns when the process has ended or the deadline has passed.
void wait_for_exit(pid_t pid, std::chrono::milliseconds deadline) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  ::poll(&ended, 1, static_cast<int>(deadline.count()));
}

}  // namespace

Status run_child(const std::vector<std::string>& command, const std::filesystem::path& output,
                 std::chrono::milliseconds deadline) {
  const UniqueFd file(::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return Status(Code::kUnavailable, output.string() + ": " + std::strerror(errno));
  const auto argv = pointers(command);
  const pid_t pid = ::fork();
  if (pid < 0) return Status(Code::kUnavailable, std::string("fork: ") + std::strerror(errno));
  if (pid == 0) start(const_cast<char**>(argv.data()), file.get());
  ::setpgid(pid, pid);
  wait_for_exit(pid, deadline);

  int status = 0;
  std::string how;
  Code code = Code::kInternal;
  if (::waitpid(pid, &status, WNOHANG) != pid) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    code = Code::kTimeout;
    how = "did not end within " + std::to_string(deadline.count()) + " ms";
  } else if (WIFSIGNALED(status)) {
    how = "died of signal " + std::to_string(WTERMSIG(status));
  } else if (WEXITSTATUS(status) == kNotStarted) {
    how = "could not be started";
  } else if (WEXITSTATUS(status) != 0) {
    how = "exited with code " + std::to_string(WEXITSTATUS(status));
  }
  if (how.empty()) return {};
  return Status(code, command.front() + " " + how + "; its last output:\n" + last_lines(output));
}

Status become(const std::vector<std::string>& command) {
  const auto argv = pointers(command);
  ::execv(argv.front(), argv.data());
  return Status(Code::kUnavailable, command.front() + ": " + std::strerror(errno));
}

}  // namespace elastic::bench
