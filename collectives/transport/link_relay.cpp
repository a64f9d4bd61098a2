#include "collectives/transport/link_relay.hpp"

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
#include "collectives/transport/reach_peer.hpp"
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
struct LinkRelay::Pair {
  Pair(std::shared_ptr<LinkRelay> relay, DataSocket from, DataSocket to)
      : owner(std::move(relay)), dialer(std::move(from)), target(std::move(to)) {
    boost::system::error_code ignored;
    for (DataSocket* socket : {&dialer, &target}) {
      socket->set_option(asio::ip::tcp::no_delay(true), ignored);
      keep_alive(socket->native_handle());
      owner->context_->sockets.add(*socket);
    }
    ++owner->pairs_;
  }
  ~Pair() {
    for (DataSocket* socket : {&dialer, &target}) owner->context_->sockets.remove(*socket);
    --owner->pairs_;
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void end() {
    boost::system::error_code ignored;
    dialer.close(ignored);
    target.close(ignored);
  }

  const std::shared_ptr<LinkRelay> owner;
  DataSocket dialer;
  DataSocket target;
  int pumps = 2;  // directions that are still open
};

LinkRelay::LinkRelay(std::shared_ptr<LinkerContext> context) : context_(std::move(context)) {}

void LinkRelay::set_members(const std::vector<Peer>& members) {
  members_.clear();
  for (const Peer& member : members) members_.emplace(member.incarnation, member);
}

void LinkRelay::serve(DataSocket dialer, const LinkGreeting& from) {
  asio::co_spawn(
      context_->io,
      [self = shared_from_this(), dialer = std::move(dialer), from]() mutable {
        return self->relay(std::move(dialer), from);
      },
      asio::detached);
}

Task<void> LinkRelay::relay(DataSocket dialer, LinkGreeting from) {
  if (context_->closed()) co_return;
  Verdict verdict = Verdict::kWelcome;
  Result<DataSocket> reached = co_await reach_target(from, verdict);
  if (context_->closed()) co_return;
  boost::system::error_code error;
  {
    const SocketDeadline deadline(dialer, kReachLimit, context_->sockets);
    co_await asio::async_write(dialer, asio::buffer(&verdict, 1),
                               asio::redirect_error(asio::use_awaitable, error));
  }
  if (error || context_->closed() || !reached.ok()) co_return;
  log::info("relays a connection from worker {} to worker {}", from.dialer, from.target);
  const auto made =
      std::make_shared<Pair>(shared_from_this(), std::move(dialer), std::move(reached).value());
  for (const bool to_target : {true, false}) {
    asio::co_spawn(context_->io, pump(made, to_target), asio::detached);
  }
  co_await watch(made);
}

Task<Result<DataSocket>> LinkRelay::reach_target(const LinkGreeting& from, Verdict& verdict) {
  const auto target = members_.find(from.target);
  if (target == members_.end() || !members_.contains(from.dialer) || pairs_ >= kMostRelays) {
    verdict = Verdict::kNoRelay;
    co_return judge(verdict);
  }
  const Peer peer = target->second;  // the members may change meanwhile
  Result<DataSocket> reached = co_await reach(*context_, peer, "tcp", kReachLimit);
  if (!reached.ok()) verdict = Verdict::kUnreachable;
  co_return reached;
}

/// One direction, until its end, which is passed on, or until anything breaks, which ends both.
Task<void> LinkRelay::pump(std::shared_ptr<Pair> pair, bool to_target) {
  DataSocket& from = to_target ? pair->dialer : pair->target;
  DataSocket& to = to_target ? pair->target : pair->dialer;
  std::vector<std::byte> buffer(kRelayBufferBytes);
  boost::system::error_code error;
  while (!error) {
    const std::size_t got = co_await from.async_read_some(
        asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    co_await asio::async_write(to, asio::buffer(buffer, got),
                               asio::redirect_error(asio::use_awaitable, error));
  }
  if (error == asio::error::eof) to.shutdown(DataSocket::shutdown_send, error);
  if (--pair->pumps == 0 || error) pair->end();
}

/// The ends see their own half of the way acknowledged by this worker's kernel, so the other half
/// has to be watched here.
Task<void> LinkRelay::watch(std::shared_ptr<Pair> pair) {
  asio::steady_timer timer(context_->io);
  std::array<SilenceWatch, 2> watches{SilenceWatch(context_->options.link_timeout),
                                      SilenceWatch(context_->options.link_timeout)};
  while (pair->dialer.is_open()) {
    timer.expires_after(kRelayLooksEvery);
    boost::system::error_code error;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (!pair->dialer.is_open()) co_return;
    const TimePoint now = Clock::now();
    if (!watches[0].look(pair->dialer.native_handle(), now).ok() ||
        !watches[1].look(pair->target.native_handle(), now).ok()) {
      pair->end();
    }
  }
}

}  // namespace elastic::transport
