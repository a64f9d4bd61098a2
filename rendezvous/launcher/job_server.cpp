#include "rendezvous/launcher/job_server.hpp"

#include <exception>
#include <optional>
#include <signal.h>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "base/thread_name.hpp"
#include "rendezvous/server/server.hpp"

namespace elastic::launcher {

namespace asio = boost::asio;

namespace {

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
    address_ = server_->address();
    // Signals are the launcher's: a new thread inherits the mask that it is started under.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { serve(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
  }

  const std::string& address() const { return address_; }

 private:
  void serve() noexcept {
    name_this_thread("elastic-server");
    try {
      io_.run();
    } catch (const std::exception& error) {
      log::error("the rendezvous server failed: {}", error.what());
      server_.reset();  // No thread is to wait for its messages any more.
    }
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::optional<rendezvous::Server> server_;  ///< the thread's, once that runs
  std::string address_;
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
  made.membership.disconnect_grace = options.disconnect_grace;
  made.membership.outage_window = options.outage_window;
  made.membership.start_timeout = options.start_timeout;
  made.membership.below_minimum_timeout = options.below_minimum_timeout;
  return made;
}

// A server that is bound to every address is reached at loopback from here.
std::string reachable(const std::string& address) {
  if (address.starts_with("0.0.0.0:")) return "127.0.0.1" + address.substr(7);
  if (address.starts_with("[::]:")) return "[::1]" + address.substr(4);
  return address;
}

}  // namespace

class JobServer::Impl {
 public:
  Impl(asio::io_context& io, Handlers handlers) : io_(io), handlers_(std::move(handlers)) {}

  Status start(const LaunchOptions& options, const Secret& secret) {
    if (Status status = server_.start(server_options(options, secret)); !status.ok()) {
      return status;
    }
    address_ = reachable(server_.address());
    connection_.emplace(
        io_,
        rendezvous::Destination{address_,
                                secret,
                                {rendezvous::kProtocolVersion, options.job, "launcher"},
                                options.encrypt},
        std::move(handlers_));
    return {};
  }

  const std::string& address() const { return address_; }
  /// Once started.
  JobConnection& connection() { return *connection_; }

 private:
  asio::io_context& io_;
  Handlers handlers_;
  ServerThread server_;
  std::string address_;
  std::optional<JobConnection> connection_;
};

JobServer::JobServer(asio::io_context& io, Handlers handlers)
    : impl_(std::make_unique<Impl>(io, std::move(handlers))) {}
JobServer::~JobServer() = default;
Status JobServer::start(const LaunchOptions& options, const Secret& secret) {
  return impl_->start(options, secret);
}
const std::string& JobServer::address() const {
  return impl_->address();
}
void JobServer::ask_about(std::string label, std::function<void(const WorkerReport&)> answer) {
  impl_->connection().ask_about(std::move(label), std::move(answer));
}
void JobServer::request_stop() {
  impl_->connection().request_stop();
}

}  // namespace elastic::launcher
