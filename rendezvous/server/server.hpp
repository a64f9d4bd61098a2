#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/handshake.hpp"
#include "base/status.hpp"
#include "rendezvous/membership/membership.hpp"
#include "rendezvous/server/journal.hpp"
#include "rendezvous/server/quarantine.hpp"

namespace boost::asio {
class io_context;
}

namespace elastic::rendezvous {

struct ServerOptions {
  std::string bind = "127.0.0.1";  ///< an IPv4 or IPv6 address
  std::uint16_t port = 0;          ///< 0: any that is free
  std::string job;
  Secret secret{};
  bool encrypt = false;          ///< TLS on every connection; clients must do the same
  MembershipOptions membership;  ///< with the heartbeat that workers are told to keep
  QuarantineOptions quarantine;
  std::string journal;    ///< path; empty: none
  std::string event_log;  ///< path; empty: none
  std::string http;       ///< "address:port" to show the job at; empty: nowhere
  bool returns = true;    ///< it may be started again after its end
  /// For which `when_over` waits for the first worker: the process that started the server may have
  /// died before it registered, unnoticed.
  Milliseconds first_worker{60000};
  Milliseconds handshake_deadline{5000};
  std::size_t max_connections = 0;  ///< that have authenticated; 0: as descriptors allow
  /// Beyond, the oldest make room for new ones. As many as the job has workers may always be there:
  /// all of them may come at once.
  std::size_t max_unauthenticated = 64;
};

/// The rendezvous server of one job: Membership behind sockets. An unauthenticated peer, or an
/// error in one connection, affects no other connection.
///
/// Lives on one io_context, which one thread runs; every function is called there, or while it does
/// not run. Nothing is kept running by a server that was closed or destroyed.
class Server {
 public:
  Server(boost::asio::io_context& io, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Whether a server could listen now, for one that is to do so later. Fails as `listen`.
  static Status try_address(const ServerOptions& options);

  /// Binds and starts to serve. kInvalidArgument: no such address. kUnavailable: one is taken, or
  /// the journal or the event log cannot be written.
  Status listen();
  /// The same with a journal in place of `ServerOptions::journal`, in which the next floor of its
  /// contents has been made durable.
  Status listen(OpenedJournal journal);
  /// The address for workers, "127.0.0.1:4711"; after `listen`.
  const std::string& address() const;
  /// The address where the job is shown over HTTP; empty without `ServerOptions::http`.
  std::string http_address() const;
  /// Called once: some seconds after the job is done or has failed, and then with its failure; when
  /// all workers of a job that had not begun have been gone for 10 s; or, with a failure, when
  /// none has come within `first_worker`.
  void when_over(std::function<void(Status)> over);
  /// The process that started this server has ended or given up. Before the first view, the server
  /// is over soon after, unless workers are there. After `listen`.
  void lose_starter();
  /// Closes everything, now.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::rendezvous
