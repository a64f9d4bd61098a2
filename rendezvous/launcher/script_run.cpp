#include "rendezvous/launcher/script_run.hpp"

#include <array>
#include <cerrno>
#include <signal.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/wait.h>

#include "rendezvous/launcher/child_process.hpp"
#include "rendezvous/launcher/guardian.hpp"
#include "rendezvous/launcher/supervision_text.hpp"

namespace elastic::launcher {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds kBetweenLooks{10};
constexpr std::size_t kMostText = 1 << 20;

void take(const UniqueFd& from, std::string& into) {
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while ((got = ::read(from.get(), part.data(), part.size())) > 0) {
    if (into.size() < kMostText) into.append(part.data(), static_cast<std::size_t>(got));
  }
}

/// The process group of a script. At the end of the object it is gone.
class ScriptProcess {
 public:
  ScriptProcess(ChildProcess child, int guardian_pipe)
      : child_(std::move(child)), guardian_pipe_(guardian_pipe) {}
  ~ScriptProcess() {
    if (child_.pid <= 0) return;
    ::kill(-child_.pid, SIGKILL);
    Guardian::forget(guardian_pipe_, child_.pid);
    while (::waitpid(child_.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ScriptProcess(const ScriptProcess&) = delete;
  ScriptProcess& operator=(const ScriptProcess&) = delete;

  /// Takes what it has written. True once it has ended.
  bool look(ScriptEnd& end) {
    int status = 0;
    const bool ended = ::waitpid(child_.pid, &status, WNOHANG) == child_.pid;
    if (ended) {
      ::kill(-child_.pid, SIGKILL);  // what it has left in its group
      Guardian::forget(guardian_pipe_, std::exchange(child_.pid, -1));
      end.status = ExitStatus::from_wait(status);
    }
    take(child_.output, end.output);
    take(child_.errors, end.errors);
    return ended;
  }

 private:
  ChildProcess child_;
  int guardian_pipe_;
};

}  // namespace

asio::awaitable<Result<ScriptEnd>> run_script(asio::io_context& io, Script script,
                                              Milliseconds limit) {
  auto child = start_child({.path = "/bin/sh",
                            .arguments = {"sh", "-c", script.text},
                            .environment = std::move(script.environment),
                            .guardian_pipe = script.guardian_pipe});
  if (!child.ok()) co_return child.status();
  ScriptProcess process(std::move(child).value(), script.guardian_pipe);
  ScriptEnd end;
  asio::steady_timer timer(io);
  const TimePoint last = Clock::now() + limit;
  while (!process.look(end)) {
    if (Clock::now() >= last) {
      co_return Status(Code::kUnavailable,
                       "not ended after " + seconds(limit) + "; it was killed, and is run again");
    }
    boost::system::error_code ignored;
    timer.expires_after(kBetweenLooks);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return end;
}

}  // namespace elastic::launcher
