#include "rendezvous/server/server.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <fcntl.h>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/socket.h>

#include "base/asio_sockets.hpp"
#include "base/log.hpp"
#include "base/log_limit.hpp"
#include "base/printable.hpp"
#include "base/unauthenticated_connections.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/monitoring/http_server.hpp"
#include "rendezvous/protocol/connection.hpp"
#include "rendezvous/protocol/listening.hpp"
#include "rendezvous/server/job.hpp"

namespace elastic::rendezvous {
namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;
using Peer = std::shared_ptr<Connection>;
using UnauthenticatedId = UnauthenticatedConnections::Id;

namespace {

/// When there are no descriptors left, until some may be free again.
constexpr Milliseconds kAcceptPause{100};
/// Beyond so many, new ones wait in the kernel's queue for a moment: were all begun at once, none
/// would be done before its deadline.
constexpr std::size_t kHandshakesAtOnce = 256;
constexpr Milliseconds kHandshakePause{250};
/// Until a connection's first bytes: a client says them as soon as it is connected.
constexpr Milliseconds kFirstBytes{1000};

int any_descriptor() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool out_of_descriptors(const Error& error) {
  return error == boost::system::errc::too_many_files_open ||
         error == boost::system::errc::too_many_files_open_in_system;
}

/// Nothing where the dialer may come in.
std::string objection(const Greeting& greeting, const std::string& job) {
  if (greeting.protocol != kProtocolVersion) {
    return "the " + greeting.role + " speaks protocol version " +
           std::to_string(greeting.protocol) + ", this server version " +
           std::to_string(kProtocolVersion) + "; run the same release of elastic everywhere";
  }
  // A launcher may know no more than address and secret, and is told the name.
  const bool unnamed = greeting.job.empty() && greeting.role == "launcher";
  if (greeting.job != job && !unnamed) {
    return "this is the server of job '" + printable_name(job) + "', not of job '" +
           printable_name(greeting.job) + "'";
  }
  if (greeting.role != "worker" && greeting.role != "control" && greeting.role != "launcher") {
    return "unknown role '" + printable_name(greeting.role) + "'";
  }
  return {};
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, ServerOptions options)
      : io_(io), options_(std::move(options)), acceptor_(io), pause_(io) {}

  Status listen() {
    if (options_.journal.empty()) return listen(OpenedJournal{});
    auto opened = open_journal(options_.journal, options_.job);
    if (!opened.ok()) return opened.status();
    if (const auto floor = opened.value().contents.next_floor(); floor > 0) {
      const Status written = opened.value().sink->append_floor(floor);
      if (!written.ok()) return Status(Code::kUnavailable, written.message());
    }
    return listen(std::move(opened).value());
  }

  Status try_address() {
    Status bound = bind();
    close();
    return bound;
  }

  Status listen(OpenedJournal journal) {
    EventLog events;
    if (!options_.event_log.empty()) {
      auto opened = EventLog::open(options_.event_log);
      if (!opened.ok()) return opened.status();
      events = std::move(opened).value();
    }
    if (Status bound = bind(); !bound.ok()) return bound;
    warn_without_encryption();
    JournalContents& earlier = journal.contents;
    RecoveredState memory{std::move(earlier.view), earlier.next_floor(), std::move(earlier.end),
                          journal.same_training, std::move(earlier.requests)};
    job_ = std::make_shared<Job>(io_, options_.job, options_.membership, options_.quarantine,
                                 std::move(journal.sink), std::move(memory), std::move(events));
    if (!options_.returns) job_->will_not_return();
    job_->when_over(std::move(over_), options_.first_worker);
    if (Status shown = show(); !shown.ok()) return shown;
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->accept(); }, asio::detached);
    return {};
  }

  const std::string& address() const { return address_; }
  std::string http_address() const { return http_ ? http_->address() : ""; }

  void when_over(std::function<void(Status)> over) {
    if (job_) return job_->when_over(std::move(over), options_.first_worker);
    over_ = std::move(over);
  }

  void lose_starter() { job_->lose_starter(); }

  void close() {
    closed_ = true;
    Error ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    http_.reset();
    if (job_) job_->stop();
    for (const auto& [id, peer] : std::exchange(unauthenticated_peers_, {}))
      peer->abort("the server ends");
    for (const Peer& peer : std::exchange(peers_, {})) peer->abort("the server ends");
  }

 private:
  Status bind() {
    Error error;
    const auto host = asio::ip::make_address(options_.bind, error);
    if (error) {
      return Status(Code::kInvalidArgument,
                    "cannot bind to '" + options_.bind + "': it is not an IPv4 or IPv6 address");
    }
    const auto bound = listen_at(acceptor_, {host, options_.port});
    if (!bound.ok()) return bound.status();
    defer_accept(acceptor_.native_handle());
    address_ = to_string(bound.value());
    return {};
  }

  void warn_without_encryption() const {
    if (options_.encrypt || asio::ip::make_address(options_.bind).is_loopback()) return;
    log::warn(
        "listens on {} without encryption: whoever can change what crosses the network can forge "
        "commands and data of this job; use --encrypt, or a network that you trust",
        address_);
  }

  Status show() {
    if (options_.http.empty()) return {};
    http_.emplace(io_, monitoring::HttpOptions{.address = options_.http},
                  [job = job_] { return job->status(); });
    return http_->listen();
  }

  asio::awaitable<void> accept() {
    while (!closed_) {
      Error error;
      tcp::socket socket(io_);
      co_await accept_socket(acceptor_, socket, error);
      if (closed_) co_return;
      if (error) {
        if (out_of_descriptors(error) && spare_) {
          // It also fails so where no connection waits to be accepted.
          refuse();
          co_await acceptor_.async_wait(tcp::acceptor::wait_read,
                                        asio::redirect_error(asio::use_awaitable, error));
          continue;
        }
        log::warn("accepting a connection failed: {}", error.message());
        pause_.expires_after(kAcceptPause);
        co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      refused_ = 0;
      admit(std::make_shared<Connection>(std::move(socket)));
      if (unauthenticated_.size() < kHandshakesAtOnce) continue;
      pause_.expires_after(kHandshakePause);
      co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }

  /// A new connection without a descriptor is dropped with the help of the one kept for that:
  /// it learns at once that it cannot come in, and does not wait in the queue for others to leave.
  void refuse() {
    spare_.reset();
    spare_.reset(::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    if (spare_ && ++refused_ == 1) {
      log::warn("out of descriptors: new connections are refused; raise the limit (ulimit -n)");
    }
    spare_.reset();
    spare_.reset(any_descriptor());
  }

  void admit(const Peer& peer) {
    unauthenticated_.set_most(std::max(options_.max_unauthenticated, job_->expected_workers()));
    const auto admission = unauthenticated_.admit(peer->origin());
    if (admission.displaced) {
      const auto displaced = unauthenticated_peers_.find(*admission.displaced);
      displaced->second->abort("made room for another connection");
      unauthenticated_peers_.erase(displaced);
    }
    const UnauthenticatedId id = admission.admitted;
    unauthenticated_peers_.emplace(id, peer);
    asio::co_spawn(
        io_, [self = shared_from_this(), peer, id] { return self->session(peer, id); },
        [self = shared_from_this(), peer, id](std::exception_ptr thrown) {
          self->ended(peer, id, thrown);
        });
  }

  void forget_unauthenticated(UnauthenticatedId id) {
    unauthenticated_.remove(id);
    unauthenticated_peers_.erase(id);
    if (unauthenticated_.size() == kHandshakesAtOnce - 1) pause_.cancel();
  }

  void ended(const Peer& peer, UnauthenticatedId id, const std::exception_ptr& thrown) {
    if (thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& error) {
        log::error("connection of {}: {}", peer->peer(), error.what());
      } catch (...) {
        log::error("connection of {}: failed", peer->peer());
      }
    }
    peer->abort("connection closed");
    forget_unauthenticated(id);
    peers_.erase(peer);
  }

  asio::awaitable<void> session(Peer peer, UnauthenticatedId id) {
    peer->set_deadline(std::min<Milliseconds>(kFirstBytes, options_.handshake_deadline),
                       "said nothing in time");
    const Result<Greeting> greeting =
        co_await peer->accept_handshake(options_.secret, options_.encrypt, [&] {
          unauthenticated_.heard(id);
          peer->set_deadline(options_.handshake_deadline, "did not authenticate in time");
        });
    forget_unauthenticated(id);
    if (!greeting.ok()) {
      if (const auto note = refusal_lines_.admit(Clock::now())) {
        log::info("refused the connection of {}: {}{}", peer->peer(), greeting.status().message(),
                  *note);
      }
      co_return;
    }
    if (closed_) co_return;
    std::string refused = objection(greeting.value(), options_.job);
    const std::size_t most = options_.max_connections;
    if (refused.empty() && most > 0 && peers_.size() >= most) {
      refused = "the server has " + std::to_string(peers_.size()) + " connections already";
    }
    if (!refused.empty()) {
      log::info("refused {}: {}", peer->peer(), refused);
      peer->send(Refuse{refused});
      co_await peer->drain();
      co_return;
    }
    peers_.insert(peer);
    peer->take_turns(large_writes_);
    if (greeting.value().role == "worker") {
      co_await serve_worker(peer);
    } else {
      peer->no_deadline();
      const bool launcher = greeting.value().role == "launcher";
      if (launcher) job_->add_launcher(peer);
      const Removal removal{*job_, peer};
      co_await serve_control(peer, launcher);
    }
  }

  /// Takes a launcher off the list however its session ends.
  struct Removal {
    Job& job;
    const Peer& peer;
    ~Removal() { job.remove_launcher(peer); }
  };

  /// Until the first message has come the handshake's deadline goes on.
  asio::awaitable<void> serve_worker(Peer peer) {
    Result<Message> first = co_await peer->read();
    if (!first.ok()) co_return note_end(peer, first.status());
    const auto* registration = std::get_if<Register>(&first.value());
    if (registration == nullptr) {
      peer->send(Refuse{"a worker's first message must be 'register'"});
      co_await peer->drain();
      co_return;
    }
    peer->no_deadline();
    const std::string incarnation = registration->incarnation;
    LossReport loss{*this, incarnation, peer};
    job_->enter(*registration, peer);
    while (true) {
      const Result<Message> message = co_await peer->read();
      if (!message.ok()) {
        loss.why = message.status().message();
        loss.returns = message.status().code() == Code::kDamaged;
        co_return;
      }
      if (!peer->closing()) job_->received(incarnation, message.value());
    }
  }

  /// Tells the job that a worker's connection is gone, however its session ends. Not where it only
  /// brought something damaged: the worker lives, and registers again. If it does not, its silence
  /// will tell.
  struct LossReport {
    Impl& server;
    const std::string& incarnation;
    const Peer& peer;
    std::string why = "connection closed";
    bool returns = false;  ///< it is this side that gives the connection up
    ~LossReport() {
      if (server.closed_) return;
      try {
        if (returns) {
          log::warn("worker {} is to connect again: {}", incarnation, why);
        } else {
          server.job_->lost(incarnation, peer, why);
        }
      } catch (const std::exception& error) {
        log::error("loss of {}: {}", incarnation, error.what());
      }
    }
  };

  /// The end of a connection of no known worker.
  static void note_end(const Peer& peer, const Status& why) {
    if (why.code() == Code::kPeerLost) return;
    log::warn("the connection of {} was closed: {}", peer->peer(), why.message());
  }

  asio::awaitable<void> serve_control(Peer peer, bool launcher) {
    while (true) {
      const Result<Message> request = co_await peer->read();
      if (!request.ok()) co_return note_end(peer, request.status());
      // A request without an answer is made again at the server that leads.
      if (peer->closing() || !job_->leads()) continue;
      const auto* enlist = std::get_if<Enlist>(&request.value());
      if (enlist != nullptr && launcher) {
        job_->enlist(peer, *enlist);
        continue;
      }
      job_->request(peer, request.value(), launcher);
    }
  }

  asio::io_context& io_;
  const ServerOptions options_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  UniqueFd spare_{any_descriptor()};  ///< see `refuse`
  std::size_t refused_ = 0;           ///< since one came in
  std::string address_;
  std::shared_ptr<Job> job_;
  std::optional<monitoring::HttpServer> http_;
  std::function<void(Status)> over_;
  UnauthenticatedConnections unauthenticated_{options_.max_unauthenticated};
  LogLimit refusal_lines_;
  std::map<UnauthenticatedId, Peer> unauthenticated_peers_;  ///< those connections
  std::set<Peer> peers_;
  const std::shared_ptr<LargeWrites> large_writes_ = std::make_shared<LargeWrites>();
  bool closed_ = false;
};

Server::Server(asio::io_context& io, ServerOptions options)
    : impl_(std::make_shared<Impl>(io, std::move(options))) {}
Server::~Server() {
  impl_->close();
}

Status Server::try_address(const ServerOptions& options) {
  asio::io_context io(1);
  return std::make_shared<Impl>(io, options)->try_address();
}

Status Server::listen() {
  return impl_->listen();
}
Status Server::listen(OpenedJournal journal) {
  return impl_->listen(std::move(journal));
}
const std::string& Server::address() const {
  return impl_->address();
}
std::string Server::http_address() const {
  return impl_->http_address();
}
void Server::when_over(std::function<void(Status)> over) {
  impl_->when_over(std::move(over));
}
void Server::lose_starter() {
  impl_->lose_starter();
}
void Server::close() {
  impl_->close();
}

}  // namespace elastic::rendezvous
