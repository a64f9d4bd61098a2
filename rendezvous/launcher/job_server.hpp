#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/handshake.hpp"
#include "base/status.hpp"
#include "rendezvous/launcher/job_connection.hpp"
#include "rendezvous/launcher/launch_options.hpp"

namespace elastic::launcher {

/// The job's rendezvous server, on a thread of its own in this process, and the launcher's
/// connection to it. Owned by the launcher's thread; handlers run on the launcher's io_context.
class JobServer {
 public:
  using Handlers = JobConnection::Handlers;

  JobServer(boost::asio::io_context& io, Handlers handlers);
  ~JobServer();

  Status start(const LaunchOptions& options, const Secret& secret);
  /// "host:port" for the workers.
  const std::string& address() const;
  /// As JobConnection::ask_about.
  void ask_about(std::string label, std::function<void(const WorkerReport&)> answer);
  void request_stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::launcher
