#include "rendezvous/launcher/job_server.hpp"

#include <deque>
#include <exception>
#include <optional>
#include <signal.h>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "rendezvous/client/dial.hpp"
#include "rendezvous/server/server.hpp"

namespace elastic::launcher {

namespace asio = boost::asio;

namespace {

constexpr Milliseconds kConnectTimeout{10000};

/// The server with the thread that it lives on. Made, started and destroyed by the launcher's
/// thread.
class ServerThread {
 public:
  ServerThread() = default;
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;
  ~ServerThread() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] { server_.reset(); });
    work_.reset();
    thread_.join();
  }

  Status start(rendezvous::ServerOptions options) {
    server_.emplace(io_, std::move(options));
    if (Status status = server_->listen(); !status.ok()) return status;
    // Signals are the launcher's: a new thread inherits the mask that it is started under.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { serve(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
  }

  const std::string& address() const { return server_->address(); }

 private:
  void serve() noexcept {
    try {
      io_.run();
    } catch (const std::exception& error) {
      log::get().error("the rendezvous server failed: {}", error.what());
    }
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::optional<rendezvous::Server> server_;
  std::thread thread_;
};

rendezvous::ServerOptions server_options(const LaunchOptions& options, const Secret& secret) {
  rendezvous::ServerOptions made;
  made.bind = options.bind;
  made.port = options.port;
  made.job = options.job;
  made.secret = secret;
  made.encrypt = options.encrypt;
  made.membership.initial_np = options.np;
  made.membership.min_np = options.min_np;
  made.membership.max_np = options.max_np;
  made.membership.evict_after = options.evict_after;
  made.membership.max_join_stall = options.max_join_stall;
  return made;
}

// A server that is bound to every address is reached at loopback from here.
std::string reachable(const std::string& address) {
  if (address.starts_with("0.0.0.0:")) return "127.0.0.1" + address.substr(7);
  if (address.starts_with("[::]:")) return "[::1]" + address.substr(4);
  return address;
}

}  // namespace

/// The launcher's side: one connection of role "launcher". Answers come in the order of requests.
class JobServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, Handlers handlers) : io_(io), handlers_(std::move(handlers)) {}

  Status start(const LaunchOptions& options, const Secret& secret) {
    if (Status status = server_.start(server_options(options, secret)); !status.ok()) {
      return status;
    }
    address_ = reachable(server_.address());
    const rendezvous::Destination destination{
        address_, secret, {rendezvous::kProtocolVersion, options.job, "launcher"}, options.encrypt};
    asio::co_spawn(
        io_, [self = shared_from_this(), destination] { return self->converse(destination); },
        asio::detached);
    return {};
  }

  const std::string& address() const { return address_; }

  void ask_phase(std::function<void(JobPhase)> answer) {
    if (gone_) {
      asio::post(io_, [answer = std::move(answer), phase = phase_] { answer(phase); });
      return;
    }
    asking_.push_back(std::move(answer));
    send(rendezvous::StatusRequest{});
  }

  void request_stop() { send(rendezvous::StopRequest{}); }

  /// The owner is going: no handler is called any more.
  void abandon() {
    handlers_ = {};
    asking_.clear();
    if (connection_) connection_->abort("the launcher ends");
  }

 private:
  asio::awaitable<void> converse(rendezvous::Destination destination) {
    const auto dialed = co_await rendezvous::dial(std::move(destination), kConnectTimeout);
    if (!dialed.ok()) {
      lose(dialed.status());
      co_return;
    }
    connection_ = dialed.value();
    for (const auto& message : std::exchange(unsent_, {})) connection_->send(message);
    while (true) {
      const auto message = co_await connection_->read();
      if (!message.ok()) {
        lose(message.status());
        co_return;
      }
      receive(message.value());
    }
  }

  void receive(const rendezvous::Message& message) {
    if (const auto* state = std::get_if<rendezvous::JobState>(&message)) {
      phase_ = parse_job_phase(state->phase);
      if (handlers_.on_state) handlers_.on_state({phase_, state->text});
    } else if (const auto* spawn = std::get_if<rendezvous::Spawn>(&message)) {
      if (handlers_.on_spawn) handlers_.on_spawn({spawn->count});
    } else if (const auto* status = std::get_if<rendezvous::StatusReply>(&message)) {
      phase_ = parse_job_phase(status->phase);
      answer_next();
    } else if (const auto* done = std::get_if<rendezvous::Done>(&message); done && !done->ok) {
      log::get().warn("the server cannot stop the job: {}", done->text);
    }
  }

  void answer_next() {
    if (asking_.empty()) return;
    const auto answer = std::move(asking_.front());
    asking_.pop_front();
    answer(phase_);
  }

  void lose(const Status& why) {
    gone_ = true;
    if (handlers_.on_state) log::get().error("lost the rendezvous server: {}", why.message());
    while (!asking_.empty()) answer_next();
  }

  void send(const rendezvous::Message& message) {
    if (connection_) {
      connection_->send(message);
    } else if (!gone_) {
      unsent_.push_back(message);
    }
  }

  asio::io_context& io_;
  Handlers handlers_;
  ServerThread server_;
  std::string address_;
  std::shared_ptr<rendezvous::Connection> connection_;
  std::vector<rendezvous::Message> unsent_;  ///< until there is a connection
  std::deque<std::function<void(JobPhase)>> asking_;
  JobPhase phase_ = JobPhase::kForming;
  bool gone_ = false;
};

JobServer::JobServer(asio::io_context& io, Handlers handlers)
    : impl_(std::make_shared<Impl>(io, std::move(handlers))) {}
JobServer::~JobServer() {
  impl_->abandon();
}
Status JobServer::start(const LaunchOptions& options, const Secret& secret) {
  return impl_->start(options, secret);
}
const std::string& JobServer::address() const {
  return impl_->address();
}
void JobServer::ask_phase(std::function<void(JobPhase)> answer) {
  impl_->ask_phase(std::move(answer));
}
void JobServer::request_stop() {
  impl_->request_stop();
}

}  // namespace elastic::launcher
