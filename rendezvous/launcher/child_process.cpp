#include "rendezvous/launcher/child_process.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/descriptor_limit.hpp"
#include "rendezvous/launcher/guardian.hpp"
#include "rendezvous/launcher/output_channel.hpp"

namespace elastic::launcher {

namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (const auto& text : texts) made.push_back(const_cast<char*>(text.c_str()));
  made.push_back(nullptr);
  return made;
}

// Whatever the launcher has, by itself or from the process that started it, ends with execve, but
// for the standard streams and `kept`. Async-signal-safe. False where the kernel refuses.
bool close_the_rest_on_exec(int kept) noexcept {
  const auto mark = [](unsigned first, unsigned last) {
    if (first > last || ::close_range(first, last, CLOSE_RANGE_CLOEXEC) == 0) return true;
    if (errno != ENOSYS && errno != EINVAL) return false;
    // Before Linux 5.11.
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    for (rlim_t fd = first; fd <= last && fd < limit.rlim_cur; ++fd) {
      ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
    }
    return true;
  };
  constexpr unsigned kFirst = STDERR_FILENO + 1;
  constexpr unsigned kLast = ~0U;
  if (kept < static_cast<int>(kFirst)) return mark(kFirst, kLast);
  const auto middle = static_cast<unsigned>(kept);
  return mark(kFirst, middle - 1) && mark(middle + 1, kLast) && ::fcntl(kept, F_SETFD, 0) == 0;
}

// Everything here is async-signal-safe: the launcher has threads. Returns only on failure.
struct ChildSide {
  const ChildCommand& command;
  char** argv;
  char** envp;
  pid_t parent;
  int input;  // -1: /dev/null
  int output;
  int errors;

  void become() const noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // died before the line above
    ::setpgid(0, 0);
    if (command.guardian_pipe >= 0) Guardian::enrol(command.guardian_pipe, ::getpid());
    const int from = input >= 0 ? input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (from < 0 || ::dup2(from, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
        ::dup2(errors, STDERR_FILENO) < 0) {
      return;
    }
    if (!close_the_rest_on_exec(command.inherited_fd)) return;
    restore_descriptor_limit();  // lower, and all descriptors of the child are open by now
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    if (command.ignores_signals) {
      for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::signal(number, SIG_IGN);
    }
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
  std::string no_terminal;
  auto output = command.terminal ? make_terminal() : make_pipe();
  if (!output.ok() && command.terminal) {
    no_terminal = output.status().message();
    output = make_pipe();
  }
  if (!output.ok()) return output.status();
  auto errors = make_pipe();
  if (!errors.ok()) return errors.status();
  auto input = command.input ? make_pipe() : Result<OutputChannel>(OutputChannel{});
  if (!input.ok()) return input.status();
  auto failure = make_pipe();
  if (!failure.ok()) return failure.status();
  auto argv = pointers(command.arguments);
  auto envp = pointers(command.environment);
  const ChildSide side{command,
                       argv.data(),
                       envp.data(),
                       ::getpid(),
                       input.value().read_end.get(),
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
  if (command.input) ::fcntl(input.value().write_end.get(), F_SETFL, O_NONBLOCK);
  return ChildProcess{pid, std::move(output.value().read_end), std::move(errors.value().read_end),
                      std::move(no_terminal), std::move(input.value().write_end)};
}

}  // namespace elastic::launcher
