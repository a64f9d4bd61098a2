#include "benchmarks/swarm/server_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/unique_fd.hpp"

namespace elastic::bench {

namespace {

constexpr int kNotStarted = 127;

// Runs in the child between fork and exec, where only async-signal-safe calls are allowed.
[[noreturn]] void start_program(char** argv, int output) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(output, STDOUT_FILENO);
  ::execv(argv[0], argv);
  ::_exit(kNotStarted);
}

/// The address in the server's first line, "job NAME at ADDRESS"; empty if it ends without one.
std::string read_address(UniqueFd output) {
  std::string line;
  for (char next = 0; ::read(output.get(), &next, 1) == 1 && next != '\n';) line += next;
  const auto at = line.rfind(" at ");
  return at == std::string::npos ? std::string() : line.substr(at + 4);
}

}  // namespace

ServerProcess::~ServerProcess() {
  kill();
}

Status ServerProcess::start(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Status(Code::kUnavailable, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  std::vector<char*> argv;
  for (const auto& text : command) argv.push_back(const_cast<char*>(text.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) start_program(argv.data(), input.get());
  if (pid_ < 0) {
    return Status(Code::kUnavailable, "cannot start " + command[0] + ": " + std::strerror(errno));
  }
  input.reset();
  address_ = read_address(std::move(output));
  if (!address_.empty()) return {};
  return Status(Code::kUnavailable, command[0] +
                                        " has ended before it listened; give the path of "
                                        "elastic-rendezvous with --server");
}

void ServerProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

/// Read off the process's own clock, which counts nanoseconds: an idle server needs less in a
/// second than the ticks of 10 ms that /proc/PID/stat counts in.
Duration ServerProcess::processor_time() const {
  clockid_t clock{};
  timespec time{};
  if (const int error = ::clock_getcpuclockid(pid_, &clock); error != 0) {
    throw std::system_error(error, std::generic_category(), "clock of the server's process");
  }
  if (::clock_gettime(clock, &time) != 0) {
    throw std::system_error(errno, std::generic_category(), "processor time of the server");
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace elastic::bench
