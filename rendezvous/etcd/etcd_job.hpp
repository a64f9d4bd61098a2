#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "rendezvous/etcd/etcd_client.hpp"

namespace elastic::etcd {

/// A key's value, and the revisions by which transactions are conditional on it.
struct Entry {
  std::string value;
  std::int64_t created = 0;   ///< the revision at which the key was made
  std::int64_t modified = 0;  ///< the revision at which it got this value; 0: there is no such key
  std::int64_t lease = 0;
};

struct Lease {
  std::int64_t id = 0;
  Milliseconds length{};
};

/// The state of a job in etcd: who leads, and the journal.
struct JobEntries {
  std::optional<Entry> leader;
  Entry journal;
};

/// A job's two keys in etcd, elastic/JOB/leader and elastic/JOB/journal. The first is made by the
/// server that leads, with its lease, and goes with the lease. The second is written only by
/// transactions that are conditional on both: on the leader's key being the one that this server
/// made, so that a former leader writes nothing, and on the journal's latest revision, so that a
/// late copy of an earlier write does not undo a later one.
///
/// Each function goes on until `until`; their failures are those of EtcdClient::call.
class EtcdJob {
 public:
  EtcdJob(std::shared_ptr<EtcdClient> client, const std::string& job);

  boost::asio::awaitable<Result<std::optional<Entry>>> leader(TimePoint until);
  /// Without a value, and with `modified` 0, where there is none.
  boost::asio::awaitable<Result<Entry>> journal(TimePoint until);
  boost::asio::awaitable<Result<Lease>> grant(Milliseconds length, TimePoint until);
  /// The lease's new length; 0: it has ended.
  boost::asio::awaitable<Result<Milliseconds>> renew(Lease lease, TimePoint until);
  boost::asio::awaitable<Status> revoke(Lease lease, TimePoint until);
  /// Makes the leader's key with the lease, unless there is one, and tells what is there then: this
  /// server leads where the key has its lease.
  boost::asio::awaitable<Result<JobEntries>> campaign(Lease lease, std::string value,
                                                      TimePoint until);
  /// Replaces the journal that is in `held`, and tells what is there then: another one where that
  /// was not the latest. kStopped: this server leads no more.
  boost::asio::awaitable<Result<Entry>> write(JobEntries held, std::string journal,
                                              TimePoint until);

 private:
  const std::shared_ptr<EtcdClient> client_;
  const std::string leader_;   ///< the key, as base64
  const std::string journal_;  ///< the same
};

}  // namespace elastic::etcd
