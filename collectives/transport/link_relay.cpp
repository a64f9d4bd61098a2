// The part of the Linker that passes bytes on between two members that do not reach each other.
#include <array>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/log.hpp"
#include "collectives/transport/linker_impl.hpp"
#include "collectives/transport/tcp/silence_watch.hpp"

namespace elastic::transport {

namespace asio = boost::asio;

namespace {

/// Connections that one worker relays at a time; each has two sockets and two buffers.
constexpr std::size_t kMostRelays = 64;
constexpr std::size_t kRelayBufferBytes = 64 * 1024;
/// A dialer waits longer for a relay.
constexpr Milliseconds kReachLimit{700};
constexpr Milliseconds kRelayLooksEvery{100};

}  // namespace

/// Two connections that are one for those at their ends. Lives as long as a coroutine works for it.
struct Linker::Impl::Relay {
  Relay(std::shared_ptr<Impl> linker, Socket from, Socket to)
      : owner(std::move(linker)), dialer(std::move(from)), target(std::move(to)) {
    boost::system::error_code ignored;
    for (Socket* socket : {&dialer, &target}) {
      socket->set_option(asio::ip::tcp::no_delay(true), ignored);
      keep_alive(socket->native_handle());
      owner->open_.insert(socket);
    }
    ++owner->relays_;
  }
  ~Relay() {
    for (Socket* socket : {&dialer, &target}) owner->open_.erase(socket);
    --owner->relays_;
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void end() {
    boost::system::error_code ignored;
    dialer.close(ignored);
    target.close(ignored);
  }

  const std::shared_ptr<Impl> owner;
  Socket dialer;
  Socket target;
  int pumps = 2;  // directions that are still open
};

/// `from` has shown the secret and asks to be connected with its target.
Linker::Impl::Task<void> Linker::Impl::relay(Socket dialer, LinkGreeting from) {
  const auto self = shared_from_this();
  Verdict verdict = Verdict::kWelcome;
  Result<Socket> reached = co_await reach_target(from, verdict);
  if (closed_) co_return;
  boost::system::error_code error;
  {
    const SocketDeadline deadline(dialer, kReachLimit, open_);
    co_await asio::async_write(dialer, asio::buffer(&verdict, 1),
                               asio::redirect_error(asio::use_awaitable, error));
  }
  if (error || closed_ || !reached.ok()) co_return;
  log::info("relays a connection from worker {} to worker {}", from.dialer, from.target);
  const auto made = std::make_shared<Relay>(self, std::move(dialer), std::move(reached).value());
  for (const bool to_target : {true, false}) {
    asio::co_spawn(io_, pump(made, to_target), asio::detached);
  }
  co_await watch(made);
}

/// Only between members of the present view: a relay must not be a way into other networks.
Linker::Impl::Task<Result<Linker::Impl::Socket>> Linker::Impl::reach_target(
    const LinkGreeting& from, Verdict& verdict) {
  const auto target = members_.find(from.target);
  if (target == members_.end() || !members_.contains(from.dialer) || relays_ >= kMostRelays) {
    verdict = Verdict::kNoRelay;
    co_return judge(verdict);
  }
  const Peer peer = target->second;  // the members may change meanwhile
  Result<Socket> reached = co_await reach(peer, "tcp", kReachLimit);
  if (!reached.ok()) verdict = Verdict::kUnreachable;
  co_return reached;
}

/// One direction, until its end, which is passed on, or until anything breaks, which ends both.
Linker::Impl::Task<void> Linker::Impl::pump(std::shared_ptr<Relay> relay, bool to_target) {
  Socket& from = to_target ? relay->dialer : relay->target;
  Socket& to = to_target ? relay->target : relay->dialer;
  std::vector<std::byte> buffer(kRelayBufferBytes);
  boost::system::error_code error;
  while (!error) {
    const std::size_t got = co_await from.async_read_some(
        asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    co_await asio::async_write(to, asio::buffer(buffer, got),
                               asio::redirect_error(asio::use_awaitable, error));
  }
  if (error == asio::error::eof) to.shutdown(Socket::shutdown_send, error);
  if (--relay->pumps == 0 || error) relay->end();
}

/// The ends see their own half of the way acknowledged by this worker's kernel, so the other half
/// has to be watched here.
Linker::Impl::Task<void> Linker::Impl::watch(std::shared_ptr<Relay> relay) {
  asio::steady_timer timer(io_);
  std::array<SilenceWatch, 2> watches{SilenceWatch(options_.link_timeout),
                                      SilenceWatch(options_.link_timeout)};
  while (relay->dialer.is_open()) {
    timer.expires_after(kRelayLooksEvery);
    boost::system::error_code error;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (!relay->dialer.is_open()) co_return;
    const TimePoint now = Clock::now();
    if (!watches[0].look(relay->dialer.native_handle(), now).ok() ||
        !watches[1].look(relay->target.native_handle(), now).ok()) {
      relay->end();
    }
  }
}

}  // namespace elastic::transport
