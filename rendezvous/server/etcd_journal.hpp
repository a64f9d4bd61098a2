#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/status.hpp"
#include "rendezvous/etcd/etcd_job.hpp"
#include "rendezvous/server/journal.hpp"
#include "rendezvous/server/leadership.hpp"

namespace elastic::rendezvous {

/// The journal of a job in etcd, for the server that leads: one value, of which each append writes
/// a new version, on the io_context of the server, which goes on meanwhile.
struct EtcdJournalParts {
  std::shared_ptr<etcd::EtcdJob> store;
  etcd::JobEntries held;  ///< with the latest revision of the journal
  std::string job;
  JournalContents contents;
  std::shared_ptr<const Leadership> leadership;
  std::function<void(const Status&)> on_lost;  ///< another server may lead
};

std::unique_ptr<JournalSink> make_etcd_journal(boost::asio::io_context& io, EtcdJournalParts parts);

}  // namespace elastic::rendezvous
