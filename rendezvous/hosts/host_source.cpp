#include "rendezvous/hosts/host_source.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.hpp"
#include "rendezvous/launcher/script_run.hpp"

namespace elastic::hosts {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds kBetweenLooks{1000};
constexpr Milliseconds kScriptLimit{10000};

/// Ten thousand hosts and more.
constexpr std::size_t kMostListBytes = std::size_t{1} << 20;

Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Status(Code::kUnavailable, "--hostfile " + path +
                                          " cannot be read: it is no regular file, and is read "
                                          "again and again");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostListBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.is_open()) {
    return Status(Code::kUnavailable,
                  "--hostfile " + path + " cannot be read: " + std::strerror(errno));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostListBytes) {
    return Status(Code::kUnavailable, "--hostfile " + path + " is longer than " +
                                          std::to_string(kMostListBytes) +
                                          " bytes, and is no list of hosts");
  }
  return text;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

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
    launcher::Script script{place_.script, place_.environment, place_.guardian_pipe};
    const auto ended = co_await launcher::run_script(io_, std::move(script), kScriptLimit);
    if (!ended.ok()) {
      co_return Status(ended.status().code(), name + ": " + ended.status().message());
    }
    if (!ended.value().status.ok()) {
      const std::string said = last_line(ended.value().errors);
      co_return Status(Code::kUnavailable, name + ": " + ended.value().status.text() +
                                               (said.empty() ? "" : ": " + said));
    }
    co_return parse_host_lines(ended.value().output, place_.usual_slots, name);
  }

  asio::io_context& io_;
  const Place place_;
  Handler handler_;
  asio::steady_timer pause_;
  std::optional<HostList> hosts_;
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
