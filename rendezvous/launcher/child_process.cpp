#include "rendezvous/launcher/child_process.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "rendezvous/launcher/guardian.hpp"

namespace elastic::launcher {

namespace {

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Status(Code::kUnavailable, std::string("pipe: ") + std::strerror(errno));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (const auto& text : texts) made.push_back(const_cast<char*>(text.c_str()));
  made.push_back(nullptr);
  return made;
}

// Everything here is async-signal-safe: the launcher has threads. Returns only on failure.
struct ChildSide {
  const ChildCommand& command;
  char** argv;
  char** envp;
  pid_t parent;
  int output;
  int errors;

  void become() const noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // died before the line above
    ::setpgid(0, 0);
    if (command.guardian_pipe >= 0) Guardian::enrol(command.guardian_pipe, ::getpid());
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
        ::dup2(errors, STDERR_FILENO) < 0) {
      return;
    }
    if (command.inherited_fd >= 0 && ::fcntl(command.inherited_fd, F_SETFD, 0) != 0) return;
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(command.path.c_str(), argv, envp);
  }
};

// The pipe closes without a byte when execve succeeded.
int read_failure(int pipe) {
  int failure = 0;
  ssize_t got = 0;
  do {
    got = ::read(pipe, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof failure) ? failure : 0;
}

}  // namespace

Result<ChildProcess> start_child(const ChildCommand& command) {
  auto output = make_pipe();
  if (!output.ok()) return output.status();
  auto errors = make_pipe();
  if (!errors.ok()) return errors.status();
  auto failure = make_pipe();
  if (!failure.ok()) return failure.status();
  auto argv = pointers(command.arguments);
  auto envp = pointers(command.environment);
  const ChildSide side{command,
                       argv.data(),
                       envp.data(),
                       ::getpid(),
                       output.value().write_end.get(),
                       errors.value().write_end.get()};

  const pid_t pid = ::fork();
  if (pid < 0) return Status(Code::kUnavailable, std::string("fork: ") + std::strerror(errno));
  if (pid == 0) {
    side.become();
    const int why = errno;
    [[maybe_unused]] const auto told = ::write(failure.value().write_end.get(), &why, sizeof why);
    ::_exit(127);
  }
  failure.value().write_end.reset();
  if (const int why = read_failure(failure.value().read_end.get()); why != 0) {
    if (command.guardian_pipe >= 0) Guardian::forget(command.guardian_pipe, pid);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return Status(Code::kUnavailable, command.path + ": " + std::strerror(why));
  }
  ::fcntl(output.value().read_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(errors.value().read_end.get(), F_SETFL, O_NONBLOCK);
  return ChildProcess{pid, std::move(output.value().read_end), std::move(errors.value().read_end)};
}

}  // namespace elastic::launcher
