#include "rendezvous/hosts/host_source.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <signal.h>
#include <sstream>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/wait.h>

#include "base/clock.hpp"
#include "rendezvous/launcher/child_process.hpp"
#include "rendezvous/launcher/exit_status.hpp"
#include "rendezvous/launcher/guardian.hpp"
#include "rendezvous/launcher/supervision_text.hpp"

namespace elastic::hosts {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds kBetweenLooks{1000};
constexpr Milliseconds kScriptLimit{10000};
constexpr Milliseconds kBetweenWaits{10};
constexpr std::size_t kMostText = 1 << 20;

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || (text.str().empty() && file.bad())) {
    return Status(Code::kUnavailable,
                  "--hostfile " + path + " cannot be read: " + std::strerror(errno));
  }
  return text.str();
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

/// A run of the script. Kills what it leaves behind.
class ScriptRun {
 public:
  ScriptRun(asio::io_context& io, launcher::ChildProcess child, int guardian_pipe)
      : pid_(child.pid),
        guardian_pipe_(guardian_pipe),
        output_(io, child.output.release()),
        errors_(io, child.errors.release()),
        timer_(io) {}
  ~ScriptRun() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    launcher::Guardian::forget(guardian_pipe_, pid_);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ScriptRun(const ScriptRun&) = delete;
  ScriptRun& operator=(const ScriptRun&) = delete;

  /// Its status and what it has written; none where it takes longer than `limit`.
  asio::awaitable<std::optional<launcher::ExitStatus>> end(Milliseconds limit) {
    const TimePoint last = Clock::now() + limit;
    while (Clock::now() < last) {
      take(output_, text);
      take(errors_, complaints);
      int status = 0;
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == pid_) {
        ::kill(-pid_, SIGKILL);
        launcher::Guardian::forget(guardian_pipe_, std::exchange(pid_, -1));
        take(output_, text);
        take(errors_, complaints);
        co_return launcher::ExitStatus::from_wait(status);
      }
      boost::system::error_code ignored;
      timer_.expires_after(kBetweenWaits);
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return std::nullopt;
  }

  std::string text;
  std::string complaints;

 private:
  static void take(asio::posix::stream_descriptor& from, std::string& into) {
    std::array<char, 4096> part{};
    ssize_t got = 0;
    while ((got = ::read(from.native_handle(), part.data(), part.size())) > 0) {
      if (into.size() < kMostText) into.append(part.data(), static_cast<std::size_t>(got));
    }
  }

  pid_t pid_;
  int guardian_pipe_;
  asio::posix::stream_descriptor output_;
  asio::posix::stream_descriptor errors_;
  asio::steady_timer timer_;
};

}  // namespace

class HostSource::Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(asio::io_context& io, Place place, Handler handler)
      : io_(io), place_(std::move(place)), handler_(std::move(handler)), pause_(io) {}

  void start() {
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->run(); },
        [](std::exception_ptr thrown) {
          if (thrown) std::rethrow_exception(thrown);
        });
  }
  void abandon() {
    handler_ = {};
    pause_.cancel();
  }

 private:
  asio::awaitable<void> run() {
    while (handler_) {
      const Result<HostList> hosts = co_await look();
      if (!handler_) co_return;
      tell(hosts);
      boost::system::error_code ignored;
      pause_.expires_after(kBetweenLooks);
      co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

  void tell(const Result<HostList>& hosts) {
    if (!hosts.ok()) {
      if (std::exchange(error_, hosts.status().message()) != error_) handler_(hosts);
      return;
    }
    const bool recovered = !std::exchange(error_, "").empty();
    if (hosts_ == hosts.value() && !recovered) return;
    hosts_ = hosts.value();
    handler_(hosts);
  }

  asio::awaitable<Result<HostList>> look() {
    if (!place_.file.empty()) {
      const auto text = read_file(place_.file);
      if (!text.ok()) co_return text.status();
      co_return parse_host_lines(text.value(), place_.usual_slots, place_.file);
    }
    co_return co_await run_script();
  }

  asio::awaitable<Result<HostList>> run_script() {
    const std::string name = "--discover " + place_.script;
    auto child = launcher::start_child({.path = "/bin/sh",
                                        .arguments = {"sh", "-c", place_.script},
                                        .environment = place_.environment,
                                        .guardian_pipe = place_.guardian_pipe});
    if (!child.ok()) co_return child.status();
    ScriptRun script(io_, std::move(child).value(), place_.guardian_pipe);
    const auto ended = co_await script.end(kScriptLimit);
    if (!ended) {
      co_return Status(Code::kUnavailable, name + ": not ended after " +
                                               launcher::seconds(kScriptLimit) +
                                               "; it was killed, and is run again");
    }
    if (!ended->ok()) {
      const std::string said = last_line(script.complaints);
      co_return Status(Code::kUnavailable,
                       name + ": " + ended->text() + (said.empty() ? "" : ": " + said));
    }
    co_return parse_host_lines(script.text, place_.usual_slots, name);
  }

  asio::io_context& io_;
  const Place place_;
  Handler handler_;
  asio::steady_timer pause_;
  HostList hosts_;
  std::string error_;
};

HostSource::HostSource(asio::io_context& io, Place place, Handler handler)
    : watch_(std::make_shared<Watch>(io, std::move(place), std::move(handler))) {
  watch_->start();
}
HostSource::~HostSource() {
  watch_->abandon();
}

}  // namespace elastic::hosts
