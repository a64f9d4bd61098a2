#include "rendezvous/launcher/guardian.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <signal.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

namespace elastic::launcher {

namespace {

// One record is far below PIPE_BUF, so that writers never mix: +group enrols, -group forgets.
void write_record(int pipe, pid_t record) noexcept {
  while (::write(pipe, &record, sizeof record) < 0 && errno == EINTR) {
  }
}

}  // namespace

Status Guardian::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Status(Code::kUnavailable, std::string("pipe: ") + std::strerror(errno));
  }
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) return Status(Code::kUnavailable, std::string("fork: ") + std::strerror(errno));
  if (pid_ == 0) {
    write_end.reset();
    watch(read_end.get());
  }
  pipe_ = std::move(write_end);
  return {};
}

Guardian::~Guardian() {
  if (pid_ <= 0) return;
  pipe_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::enrol(int pipe, pid_t group) noexcept {
  write_record(pipe, group);
}

void Guardian::forget(int pipe, pid_t group) noexcept {
  write_record(pipe, -group);
}

void Guardian::watch(int pipe) noexcept {
  // A session of its own: what is sent to the launcher's terminal or group does not reach it. Slurm
  // signals every process of a task.
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "elasticrun-guard");
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) ::dup2(null, fd);
  std::set<pid_t> groups;
  pid_t record = 0;
  for (;;) {
    const ssize_t got = ::read(pipe, &record, sizeof record);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof record)) break;
    if (record > 0) groups.insert(record);
    if (record < 0) groups.erase(-record);
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  ::_exit(0);
}

}  // namespace elastic::launcher
