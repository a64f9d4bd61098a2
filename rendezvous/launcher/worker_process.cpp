#include "rendezvous/launcher/worker_process.hpp"

#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <sys/wait.h>

#include "rendezvous/launcher/guardian.hpp"

namespace elastic::launcher {

WorkerProcess::WorkerProcess(boost::asio::io_context& io, ChildProcess child, int guardian_pipe,
                             WorkerOutput& output)
    : pid_(child.pid),
      guardian_pipe_(guardian_pipe),
      output_(output),
      out_(io, std::move(child.output), Channel::kOutput),
      err_(io, std::move(child.errors), Channel::kErrors) {}

WorkerProcess::~WorkerProcess() {
  // Only when the launcher gives up on an error of its own; otherwise `collect` was first.
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  Guardian::forget(guardian_pipe_, pid_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void WorkerProcess::pump() {
  pump(out_);
  pump(err_);
}

void WorkerProcess::pump(Source& source) {
  if (OutputWriter& writer = output_.writer(source.channel); writer.is_full()) {
    writer.when_there_is_room([self = shared_from_this(), &source] {
      if (source.pipe.is_open()) self->pump(source);
    });
    return;
  }
  // Waits, and reads by itself: a read that Asio has done but not yet told of would be behind
  // what `collect` reads.
  source.pipe.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [self = shared_from_this(), &source](boost::system::error_code error) {
                           if (!error && source.pipe.is_open() && self->take(source))
                             self->pump(source);
                         });
}

bool WorkerProcess::take(Source& source) {
  ssize_t got = 0;
  do {
    got = ::read(source.pipe.native_handle(), source.buffer.data(), source.buffer.size());
  } while (got < 0 && errno == EINTR);
  if (got > 0) output_.feed(source.channel, {source.buffer.data(), static_cast<std::size_t>(got)});
  return got > 0 || (got < 0 && errno == EAGAIN);
}

void WorkerProcess::signal(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

/// Processes of an earlier worker are in another group, also where this one has its slot. The
/// number of the group is not used again before the worker is reaped.
bool WorkerProcess::has(std::int64_t pid) const {
  return pid_ > 0 && pid > 0 && pid == static_cast<pid_t>(pid) &&
         ::getpgid(static_cast<pid_t>(pid)) == pid_;
}

std::optional<ExitStatus> WorkerProcess::collect() {
  siginfo_t info{};
  const auto id = static_cast<id_t>(pid_);
  if (pid_ <= 0 || ::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid_) {
    return std::nullopt;
  }
  // In this order: until it is reaped, its number still names its own group.
  ::kill(-pid_, SIGKILL);
  Guardian::forget(guardian_pipe_, pid_);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  take_rest(out_);
  take_rest(err_);
  output_.finish();
  return ExitStatus::from_wait(status);
}

void WorkerProcess::take_rest(Source& source) {
  const int fd = source.pipe.native_handle();
  for (pollfd readable{fd, POLLIN, 0}; ::poll(&readable, 1, 0) > 0 && take(source);) {
  }
  source.pipe.close();
}

}  // namespace elastic::launcher
