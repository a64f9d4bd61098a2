#include "rendezvous/client/client.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "rendezvous/client/backoff.hpp"
#include "rendezvous/client/dial.hpp"
#include "rendezvous/client/successor_watch.hpp"

namespace elastic::rendezvous {
namespace asio = boost::asio;

namespace {

constexpr Milliseconds kAttempt{5000};
/// The last one also gets time to find out why there is no answer.
constexpr Milliseconds kLastAttempt{100};
constexpr Milliseconds kWelcomeWithin{10000};
/// Without a server: until the first warning, and the next ones after twice as long each.
constexpr Milliseconds kFirstWarning{5000};

}  // namespace

class Client::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, ClientOptions options, Handlers handlers)
      : io_(io),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        pause_(io),
        heartbeat_(io) {}

  void start() {
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->run(); },
        [self = shared_from_this()](std::exception_ptr thrown) {
          if (thrown) self->failed(Status(Code::kInternal, "the rendezvous client failed"));
        });
  }

  void send(const Message& message) {
    if (established_) connection_->send(message);
  }

  void close() {
    over_ = true;
    pause_.cancel();
    heartbeat_.cancel();
    abort_set_aside();
    if (!connection_) return;
    if (established_) return connection_->close();
    connection_->abort("closed");
  }

  std::uint64_t received_bytes() const {
    return received_earlier_ + (connection_ ? connection_->received_bytes() : 0);
  }

  /// No callback comes after this.
  void forget() {
    handlers_ = {};
    close();
  }

 private:
  /// The whole life: connect, serve, come back.
  asio::awaitable<void> run() {
    TimePoint give_up = Clock::now() + options_.connect_deadline;
    Backoff backoff(Milliseconds(20), Milliseconds(500));
    bool immediately = true;
    while (!over_) {
      if (!immediately) co_await wait(std::min(backoff.pause(), until(give_up)));
      immediately = false;
      if (over_) co_return;
      Status outcome =
          co_await attempt(std::clamp<Duration>(until(give_up), kLastAttempt, kAttempt));
      if (over_) co_return;
      if (outcome.code() == Code::kPeerLost) {
        failed(outcome);
        give_up = TimePoint::max();
        backoff = Backoff(Milliseconds(50), Milliseconds(1000));
        immediately = true;
      } else if (outcome.code() != Code::kUnavailable) {
        co_return failed(outcome);
      } else if (Clock::now() >= give_up) {
        co_return failed(
            Status(Code::kUnavailable, "no rendezvous server answered within " +
                                           std::to_string(options_.connect_deadline.count()) +
                                           " ms at " + outcome.message()));
      } else {
        warn_of_absence(outcome, give_up);
      }
    }
  }

  /// Before the first connection: afterwards the loss has been told, and a worker trains on.
  void warn_of_absence(const Status& outcome, TimePoint give_up) {
    const TimePoint now = Clock::now();
    if (give_up == TimePoint::max() || now < warn_at_) return;
    log::warn("no rendezvous server answers yet at {}; tries for {} s more", outcome.message(),
              std::chrono::round<std::chrono::seconds>(give_up - now).count());
    warn_at_ = now + (pause_of_warnings_ *= 2);
  }

  /// Before the first welcome, what answers without the job's secret, or for another job, is a
  /// mistake in the setup. Afterwards it is no server of this job: perhaps a stranger that took the
  /// port of one that died, or one that was started wrongly. The worker trains on, and tries again.
  Status after_no_handshake(const Status& answer) {
    if (!was_welcomed_ || answer.code() == Code::kUnavailable) return answer;
    if (const TimePoint now = Clock::now(); now >= warn_at_) {
      log::warn("what answers at {} is not the server of this job ({}); training goes on",
                options_.address, answer.message());
      warn_at_ = now + (pause_of_warnings_ *= 2);
    }
    return Status(Code::kUnavailable, answer.message());
  }

  /// One connection from dialing to its end. kUnavailable: it was never established.
  asio::awaitable<Status> attempt(Duration timeout) {
    Destination destination{options_.address,
                            options_.secret,
                            {kProtocolVersion, options_.job, "worker"},
                            options_.encrypt};
    const auto dialed = co_await dial(destination, timeout);
    if (!dialed.ok()) co_return after_no_handshake(dialed.status());
    received_earlier_ = received_bytes();
    connection_ = dialed.value();
    if (over_) connection_->abort("closed");
    connection_->unpack_with([unpacking = options_.unpacking](std::string_view bytes) {
      return unpacking->message(bytes);
    });
    const SuccessorWatch watch(std::move(destination), connection_);
    connection_->set_deadline(kWelcomeWithin, "does not answer");
    connection_->send(options_.registration());
    Status ended = co_await serve(*connection_);
    heartbeat_.cancel();
    const bool was_established = std::exchange(established_, false);
    if (ended.code() == Code::kDamaged && !over_) {
      ended = Status(Code::kPeerLost, ended.message());
      set_aside();
    } else {
      connection_->abort(ended.message());
    }
    if (ended.code() == Code::kPeerLost && !was_established) {
      co_return Status(Code::kUnavailable, options_.address + ": " + ended.message());
    }
    co_return ended;
  }

  asio::awaitable<Status> serve(Connection& connection) {
    while (true) {
      Result<Message> message = co_await connection.read();
      if (!message.ok()) co_return message.status();
      if (connection.closing()) continue;
      if (const auto* refuse = std::get_if<Refuse>(&message.value())) {
        co_return Status(Code::kRefused, options_.address + ": " + refuse->reason);
      }
      if (const auto* welcome = std::get_if<Welcome>(&message.value())) {
        establish(connection, *welcome);
      }
      // After these the server closes, and there is nothing to come back to.
      if (std::holds_alternative<Farewell>(message.value()) ||
          std::holds_alternative<Fail>(message.value())) {
        established_ = true;
        over_ = true;
        heartbeat_.cancel();
        connection.close();
      }
      if (const Status known = expand(message.value()); !known.ok()) co_return known;
      if (handlers_.on_message) handlers_.on_message(std::move(message).value());
    }
  }

  /// Makes an Announce of an AnnounceChange.
  Status expand(Message& message) {
    if (const auto* change = std::get_if<AnnounceChange>(&message)) {
      Result<SharedView> view = options_.unpacking->view(change->change, announced_);
      if (!view.ok()) return view.status();
      message = Announce{std::move(view).value(), change->heartbeat_ms};
    }
    if (const auto* announce = std::get_if<Announce>(&message)) {
      announced_ = announce->view;
      if (announce->heartbeat_ms) beat_every(*announce->heartbeat_ms);
    }
    return {};
  }

  /// For the server the end of a connection is the death of a member. This one is of no more use,
  /// but it is kept until the server has put another in its place.
  void set_aside() {
    connection_->no_deadline();
    abort_set_aside();
    received_earlier_ = received_bytes();
    set_aside_ = std::exchange(connection_, nullptr);
  }
  void abort_set_aside() {
    if (set_aside_) set_aside_->abort("replaced");
    set_aside_.reset();
  }

  void establish(Connection& connection, const Welcome& welcome) {
    connection.no_deadline();
    abort_set_aside();
    was_welcomed_ = true;
    if (std::exchange(established_, true)) return;
    period_ = Milliseconds(0);
    beat_every(welcome.heartbeat_ms);
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->beat(); }, asio::detached);
  }

  /// The next heartbeat follows one period from now.
  void beat_every(std::int64_t milliseconds) {
    const Milliseconds period{std::clamp<std::int64_t>(milliseconds, 1, 60000)};
    if (period == period_) return;
    period_ = period;
    heartbeat_.expires_after(period);  // `beat` waits anew
  }

  asio::awaitable<void> beat() {
    const std::shared_ptr<Connection> connection = connection_;
    boost::system::error_code error;
    while (true) {
      co_await heartbeat_.async_wait(asio::redirect_error(asio::use_awaitable, error));
      if (over_ || !established_ || connection != connection_) co_return;
      if (error) continue;
      connection->send(options_.heartbeat());
      // After a stall one heartbeat is enough, and the next one comes when the messages of that
      // time have been read.
      const TimePoint next = heartbeat_.expiry() + period_;
      const TimePoint now = Clock::now();
      heartbeat_.expires_at(next > now ? next : now + period_);
    }
  }

  asio::awaitable<void> wait(Duration time) {
    boost::system::error_code ignored;
    pause_.expires_after(time);
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  void failed(const Status& status) {
    // A copy, because the callback may end with the client's destruction.
    const auto on_failure = handlers_.on_failure;
    if (on_failure) on_failure(status);
  }

  static Duration until(TimePoint when) {
    if (when == TimePoint::max()) return Duration::max();
    return std::max(when - Clock::now(), Duration::zero());
  }

  asio::io_context& io_;
  const ClientOptions options_;
  Handlers handlers_;
  asio::steady_timer pause_;
  asio::steady_timer heartbeat_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Connection> set_aside_;  ///< brought something damaged; often null
  std::uint64_t received_earlier_ = 0;     ///< on connections before `connection_`
  SharedView announced_ = std::make_shared<const View>();  ///< the latest view
  Milliseconds period_{0};                                 ///< of heartbeats
  bool established_ = false;                               ///< was welcomed on `connection_`
  bool was_welcomed_ = false;                              ///< on this connection or an earlier one
  bool over_ = false;                                      ///< closed, or dismissed by the server
  Milliseconds pause_of_warnings_ = kFirstWarning;
  TimePoint warn_at_ = Clock::now() + kFirstWarning;
};

Client::Client(asio::io_context& io, ClientOptions options, Handlers handlers)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(handlers))) {}
Client::~Client() {
  impl_->forget();
}

void Client::start() {
  impl_->start();
}
void Client::send(const Message& message) {
  impl_->send(message);
}
void Client::close() {
  impl_->close();
}
std::uint64_t Client::received_bytes() const {
  return impl_->received_bytes();
}

}  // namespace elastic::rendezvous
