#include "rendezvous/launcher/job_server.hpp"

#include <exception>
#include <optional>
#include <signal.h>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/descriptor_limit.hpp"
#include "base/log.hpp"
#include "base/thread_name.hpp"
#include "rendezvous/launcher/private_folder.hpp"
#include "rendezvous/launcher/process_identity.hpp"
#include "rendezvous/server/connection_limit.hpp"
#include "rendezvous/server/server.hpp"

namespace elastic::launcher {

namespace asio = boost::asio;

/// The server with the thread that it lives on.
class JobServer::Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] { server_.reset(); });
    work_.reset();
    thread_.join();
  }

  Status start(rendezvous::ServerOptions options) {
    server_.emplace(io_, std::move(options));
    if (Status status = server_->listen(); !status.ok()) return status;
    address_ = server_->address();
    http_address_ = server_->http_address();
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
  const std::string& http_address() const { return http_address_; }

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
  std::string http_address_;
  std::thread thread_;
};

namespace {

rendezvous::ServerOptions server_options(const LaunchOptions& options, const Secret& secret) {
  rendezvous::ServerOptions made;
  made.bind = options.bind;
  made.port = options.port;
  made.job = options.job;
  made.secret = secret;
  made.encrypt = options.encrypt;
  made.returns = false;
  made.quarantine.first_pause = options.quarantine;
  made.event_log = options.event_log;
  made.http = options.http;
  made.membership.initial_np = options.job_np;
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

/// A worker needs its connection and, where this process starts it, a pipe for its output and one
/// for its errors. The least is what a job has taken; a job with less would begin without workers.
Status raise_limit(const LaunchOptions& options, const rendezvous::ServerOptions& server) {
  constexpr std::size_t kForEachWorker = 3;
  constexpr std::size_t kLeastOthers = 15;
  const bool starts_all = !options.hosts.given() && options.job_np == options.np;
  const std::size_t limit = raise_descriptor_limit();
  const std::size_t least =
      starts_all ? kForEachWorker * static_cast<std::size_t>(options.np) + kLeastOthers : 0;
  if (least <= limit) {
    rendezvous::raise_connection_limit(server, starts_all ? kForEachWorker : 1);
    return {};
  }
  return Status(
      Code::kUnavailable,
      fmt::format("{} workers need {} descriptors at least, and this process may have {}: "
                  "raise the hard limit (ulimit -Hn)",
                  options.np, least, limit));
}

// A server that is bound to every address is reached at loopback from here.
std::string reachable(const std::string& address) {
  if (address.starts_with("0.0.0.0:")) return "127.0.0.1" + address.substr(7);
  if (address.starts_with("[::]:")) return "[::1]" + address.substr(4);
  return address;
}

}  // namespace

JobServer::JobServer() : thread_(std::make_unique<Thread>()) {}
JobServer::~JobServer() = default;

Status JobServer::start(const LaunchOptions& options, const Secret& secret,
                        const std::map<std::string, std::string>& environment) {
  rendezvous::ServerOptions made = server_options(options, secret);
  if (Status enough = raise_limit(options, made); !enough.ok()) return enough;
  Status status = thread_->start(std::move(made));
  if (!status.ok()) return status;
  address_ = reachable(thread_->address());
  auto folder = private_folder(environment);
  if (!folder.ok()) return folder.status();
  auto job_file = JobFile::create(folder.value(), {options.job, address_, secret, options.encrypt,
                                                   ProcessIdentity::of_this_process()});
  if (!job_file.ok()) return job_file.status();
  job_file_.emplace(std::move(job_file).value());
  return options.shared_file.empty() ? Status() : share(options, secret);
}

Status JobServer::share(const LaunchOptions& options, const Secret& secret) {
  auto shared = rendezvous::ConnectionFile::create(
      options.shared_file,
      {options.job, rendezvous::address_for_others(thread_->address(), options.reached_at), secret,
       options.encrypt});
  if (!shared.ok()) {
    return Status(shared.status().code(),
                  shared.status().message() +
                      "; the other tasks of the step are to find the server by this file: "
                      "--slurm-folder names another folder that all nodes see");
  }
  shared_file_.emplace(std::move(shared).value());
  return {};
}
const std::string& JobServer::address() const {
  return address_;
}
std::string JobServer::shown_at() const {
  const std::string& address = thread_->http_address();
  return address.empty() ? "" : "the job is shown at http://" + address + "/";
}

}  // namespace elastic::launcher
