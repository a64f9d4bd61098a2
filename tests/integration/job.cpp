#include "integration/job.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <sstream>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace elastic::testing {

namespace {

[[noreturn]] void become(const std::vector<std::string>& command, const std::string& output,
                         const std::vector<std::string>& environment) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  for (const std::string& variable : environment) {
    const auto equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "elastic-test-XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Job::Job(const std::vector<std::string>& command, std::filesystem::path output,
         const std::vector<std::string>& environment)
    : output_(std::move(output)) {
  pid_ = ::fork();
  if (pid_ == 0) become(command, output_.string(), environment);
  ::setpgid(pid_, pid_);
}

Job::~Job() {
  ::kill(-pid_, SIGKILL);
  if (!status_) ::waitpid(pid_, nullptr, 0);
}

std::optional<int> Job::wait(std::chrono::milliseconds deadline) {
  if (status_) return status_;
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  pollfd ended{fd, POLLIN, 0};
  ::poll(&ended, 1, static_cast<int>(deadline.count()));
  ::close(fd);
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return status_;
}

std::string Job::output() const {
  return read_file(output_);
}

void write_secret(const std::filesystem::path& path, char digit) {
  std::ofstream(path) << std::string(64, digit) << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace elastic::testing
