#include "benchmarks/swarm/server_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
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

/// User and system time are the 14th and 15th field of /proc/PID/stat (see proc(5)); the second,
/// the name in parentheses, may have spaces in it.
Duration ServerProcess::processor_time() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  long user = 0;
  long system = 0;
  fields >> user >> system;
  return std::chrono::milliseconds((user + system) * 1000 / ::sysconf(_SC_CLK_TCK));
}

}  // namespace elastic::bench
