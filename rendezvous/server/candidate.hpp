#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "base/secret.hpp"
#include "base/status.hpp"
#include "rendezvous/etcd/etcd_client.hpp"
#include "rendezvous/server/journal.hpp"

namespace elastic::rendezvous {

struct CandidateOptions {
  std::string job;
  Secret secret{};      ///< of the job: servers with different ones are not servers of the same job
  std::string address;  ///< of this server, to be shown by the others
  Milliseconds lease{5000};
};

/// A server of a job that has several, of which one leads: waits as a standby until there is no
/// leader in etcd, takes the lead under a lease, and keeps the lease. One that loses the lead is a
/// standby again.
///
/// Lives on the server's io_context; every function and handler is called there.
class Candidate {
 public:
  struct Handlers {
    /// This server leads, with the job's journal, in which the next floor is durable.
    std::function<void(OpenedJournal)> on_lead;
    /// It leads no more, and is to answer no client from now on.
    std::function<void(const Status& why)> on_lost;
    /// It cannot be a candidate, and ends: etcd is not reached at the start or refuses this client,
    /// or the journal in it is damaged.
    std::function<void(const Status& why)> on_failure;
  };

  Candidate(boost::asio::io_context& io, std::shared_ptr<etcd::EtcdClient> client,
            CandidateOptions options, Handlers handlers);
  ~Candidate();
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  void start();
  /// Ends, and gives the lease back, so that a standby need not wait for its end; takes a second at
  /// most. No handler is called any more.
  void resign();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::rendezvous
