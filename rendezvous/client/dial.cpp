#include "rendezvous/client/dial.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <pthread.h>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/asio/async_result.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/asio_sockets.hpp"
#include "base/thread_name.hpp"

namespace elastic::rendezvous {
namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

namespace {

Status unavailable(const std::string& address, const std::string& why) {
  return Status(Code::kUnavailable, address + ": " + why);
}

/// The objects that the timer must reach in any state of the coroutine.
struct Attempt {
  explicit Attempt(const asio::any_io_executor& executor)
      : resolver(executor), socket(executor), timer(executor) {}
  tcp::resolver resolver;
  tcp::socket socket;
  asio::steady_timer timer;
  bool late = false;
};

/// Gives the calling thread a name that the threads started meanwhile inherit.
class NameForNewThreads {
 public:
  explicit NameForNewThreads(const char* name) {
    ::pthread_getname_np(::pthread_self(), before_.data(), before_.size());
    name_this_thread(name);
  }
  ~NameForNewThreads() { name_this_thread(before_.data()); }
  NameForNewThreads(const NameForNewThreads&) = delete;
  NameForNewThreads& operator=(const NameForNewThreads&) = delete;

 private:
  std::array<char, 16> before_{};
};

/// An address needs no look-up. A name does, which Asio makes on a thread that it starts for the
/// first one.
asio::awaitable<tcp::resolver::results_type> resolve(Attempt& attempt, const HostPort& at,
                                                     Error& error) {
  Error no_address;
  const auto address = asio::ip::make_address(at.host, no_address);
  std::uint16_t port = 0;
  const char* const end = at.port.data() + at.port.size();
  const auto parsed = std::from_chars(at.port.data(), end, port);
  if (!no_address && parsed.ec == std::errc() && parsed.ptr == end) {
    co_return tcp::resolver::results_type::create(tcp::endpoint(address, port), at.host, at.port);
  }
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_return co_await asio::async_initiate<decltype(token),
                                          void(Error, tcp::resolver::results_type)>(
      [&](auto handler) {
        const NameForNewThreads name("elastic-resolve");
        attempt.resolver.async_resolve(at.host, at.port, std::move(handler));
      },
      token);
}

/// The first of the endpoints that can be reached.
asio::awaitable<void> connect_to_any(Attempt& attempt, const tcp::resolver::results_type& endpoints,
                                     Error& error) {
  error = asio::error::not_found;
  for (const auto& entry : endpoints) {
    if (attempt.late) co_return;
    Error ignored;
    attempt.socket.close(ignored);
    open_socket(attempt.socket, entry.endpoint().protocol(), error);
    if (error) continue;
    co_await attempt.socket.async_connect(entry.endpoint(),
                                          asio::redirect_error(asio::use_awaitable, error));
    if (!error) co_return;
  }
}

asio::awaitable<Result<std::shared_ptr<Connection>>> dial_one(Destination destination,
                                                              TimePoint until) {
  const Result<HostPort> parts = parse_address(destination.address);
  if (!parts.ok()) co_return parts.status();
  const auto attempt = std::make_shared<Attempt>(co_await asio::this_coro::executor);
  attempt->timer.expires_at(until);
  attempt->timer.async_wait([attempt](const Error& error) {
    if (error) return;
    attempt->late = true;
    attempt->resolver.cancel();
    Error ignored;
    attempt->socket.close(ignored);
  });
  Error error;
  const auto endpoints = co_await resolve(*attempt, parts.value(), error);
  if (!error && !attempt->late) {
    co_await connect_to_any(*attempt, endpoints, error);
  }
  attempt->timer.cancel();
  if (attempt->late) co_return unavailable(destination.address, "does not answer");
  if (error) co_return unavailable(destination.address, error.message());

  const auto connection =
      std::make_shared<Connection>(std::move(attempt->socket), destination.address);
  connection->set_deadline(until - Clock::now(), "does not answer");
  Status greeted =
      co_await connection->greet(destination.secret, destination.encrypt, destination.greeting);
  connection->no_deadline();
  if (greeted.ok()) co_return connection;
  connection->abort(greeted.message());
  if (greeted.code() == Code::kPeerLost) {
    co_return unavailable(destination.address, greeted.message() + " during the handshake");
  }
  co_return greeted;
}

}  // namespace

asio::awaitable<Result<std::shared_ptr<Connection>>> dial(Destination destination,
                                                          Duration timeout) {
  const TimePoint until = Clock::now() + timeout;
  const Result<std::vector<std::string>> addresses = parse_addresses(destination.address);
  if (!addresses.ok()) co_return addresses.status();
  auto left = static_cast<int>(addresses.value().size());
  Status failed;
  for (const std::string& address : addresses.value()) {
    const TimePoint now = Clock::now();
    destination.address = address;
    auto dialed = co_await dial_one(destination, now + (until - now) / left--);
    if (dialed.ok()) co_return dialed;
    const Status why = dialed.status();
    const bool both_unavailable =
        failed.code() == Code::kUnavailable && why.code() == Code::kUnavailable;
    if (both_unavailable) {
      failed = Status(Code::kUnavailable, failed.message() + "; " + why.message());
    } else if (failed.ok() || failed.code() == Code::kUnavailable) {
      failed = why;
    }
  }
  co_return failed;
}

}  // namespace elastic::rendezvous
