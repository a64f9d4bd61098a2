#include "collectives/transport/link_probe.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/log.hpp"
#include "collectives/transport/reach_peer.hpp"

namespace elastic::transport {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kProbeBytes = 1U << 20;
/// On a line that does not carry all of them within this, what has come tells its speed.
constexpr Milliseconds kProbeTime{1000};
/// Served at a time: the others' turn comes, and the member's own line stays the training's.
constexpr int kMostProbes = 2;
/// Between tries while the peer has no time.
constexpr Milliseconds kPause{100};

/// Times what comes after the first piece, which has waited for the connection to be made.
class Stopwatch {
 public:
  void add(std::size_t bytes) {
    total_ += bytes;
    if (began_) {
      timed_ += bytes;
    } else {
      began_ = Clock::now();
    }
  }
  std::size_t total() const { return total_; }
  double bytes_per_second() const {
    const std::chrono::duration<double> took = Clock::now() - *began_;
    return static_cast<double>(std::max<std::size_t>(timed_, 1)) / std::max(took.count(), 1e-6);
  }

 private:
  std::size_t total_ = 0;
  std::size_t timed_ = 0;
  std::optional<TimePoint> began_;
};

/// One of those that are served.
class Turn {
 public:
  explicit Turn(int& served) : served_(served) { ++served_; }
  ~Turn() { --served_; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  int& served_;
};

}  // namespace

LinkProbe::LinkProbe(std::shared_ptr<LinkerContext> context)
    : context_(std::move(context)), deadline_(context_->io) {}

void LinkProbe::measure(Peer peer, Milliseconds deadline, Measured callback) {
  context_->control_thread.check();
  measured_ = std::move(callback);
  const std::uint64_t probe = ++probe_;
  deadline_.expires_after(deadline);
  deadline_.async_wait([self = shared_from_this(), probe](boost::system::error_code error) {
    if (error) return;
    self->finish(probe, Status(Code::kTimeout, "the line could not be measured in time"));
  });
  asio::co_spawn(
      context_->io,
      [self = shared_from_this(), peer = std::move(peer), probe] {
        return self->keep_measuring(peer, probe);
      },
      asio::detached);
}

void LinkProbe::close() {
  measured_ = nullptr;
  deadline_.cancel();
}

void LinkProbe::serve(DataConnection with) {
  asio::co_spawn(
      context_->io,
      [self = shared_from_this(), with = std::move(with)]() mutable {
        return self->send_bytes(std::move(with));
      },
      asio::detached);
}

void LinkProbe::finish(std::uint64_t probe, Result<double> outcome) {
  if (probe != probe_ || !measured_) return;
  const Measured callback = std::exchange(measured_, nullptr);
  deadline_.cancel();
  callback(std::move(outcome));
}

/// Tries until it is measured, or no longer wanted.
Task<void> LinkProbe::keep_measuring(Peer peer, std::uint64_t probe) {
  asio::steady_timer timer(context_->io);
  while (!context_->closed() && probe == probe_ && measured_) {
    Result<double> outcome = co_await measure_once(peer);
    if (outcome.ok()) co_return finish(probe, std::move(outcome));
    log::debug("measuring the line from worker {}: {}", peer.incarnation,
               outcome.status().message());
    timer.expires_after(kPause);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

Task<Result<double>> LinkProbe::measure_once(const Peer& peer) {
  Result<DataSocket> reached = co_await reach(*context_, peer, "tcp", kProbeTime);
  if (!reached.ok()) co_return reached.status();
  DataConnection with{std::move(reached).value(), nullptr};
  LinkGreeting greeting;
  greeting.job = context_->options.job;
  greeting.dialer = context_->options.incarnation;
  greeting.acceptor = peer.incarnation;
  greeting.transport = kProbe;
  if (Status status = co_await introduce(*context_, with, greeting, kProbeTime); !status.ok())
    co_return status;

  const SocketDeadline deadline(with.socket, kProbeTime, context_->sockets);
  std::array<std::byte, 1U << 14> buffer;
  Stopwatch stopwatch;
  bool broken = false;
  while (stopwatch.total() < kProbeBytes && !broken) {
    const Result<std::size_t> bytes = co_await receive(with, buffer);
    broken = !bytes.ok();
    if (bytes.ok()) stopwatch.add(bytes.value());
  }
  if (stopwatch.total() == 0 || (broken && with.socket.is_open())) {
    co_return Status(Code::kUnavailable, "it broke the measurement off");
  }
  co_return stopwatch.bytes_per_second();
}

Task<void> LinkProbe::send_bytes(DataConnection with) {
  if (context_->closed() || served_ >= kMostProbes) co_return;
  const Turn turn(served_);
  const SocketDeadline deadline(with.socket, 2 * kProbeTime, context_->sockets);
  const std::vector<std::byte> plain(kProbeBytes);
  std::span<const std::byte> bytes = plain;
  if (with.tls) {
    if (const Status sealed = with.tls->seal(plain); !sealed.ok()) {
      log::warn("a line could not be measured: {}", sealed.message());
      co_return;
    }
    bytes = with.tls->sealed();
  }
  boost::system::error_code ignored;
  co_await asio::async_write(with.socket, asio::buffer(bytes.data(), bytes.size()),
                             asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace elastic::transport
