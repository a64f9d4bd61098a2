#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "rendezvous/client/dial.hpp"
#include "rendezvous/launcher/supervision.hpp"

namespace elastic::launcher {

/// The launcher's connection with the job's server, of role "launcher". Where it is lost it comes
/// back, and asks again what was not answered. Owned by the thread that runs the io_context, on
/// which handlers are called, none of them after the end of this object.
class JobConnection {
 public:
  struct Handlers {
    std::function<void(JobStateChanged)> on_state;
    std::function<void(SpawnWanted)> on_spawn;
    std::function<void(SlotsChanged)> on_slots;
    std::function<void(QuarantineChanged)> on_quarantine;
    /// On the first connection: this launcher's number in the job, and the job's name.
    std::function<void(rendezvous::Enlisted)> on_enlisted;
    /// An attempt to connect has failed, and there has been no connection for so long.
    /// kUnavailable: there is no server. Otherwise it refuses this launcher, such as for its
    /// secret. Attempts go on.
    std::function<void(Status, Duration)> on_no_connection;
    /// A worker of this launcher is to be ended. May come more than once, and when it has ended.
    /// Empty: the server does not ask for it.
    std::function<void(const rendezvous::EndWorker&)> on_end_worker{};
  };

  /// `self`: the name of this launcher and its slots. `longest_outage`: a question about a worker
  /// is answered with the last known state if there has been no connection for so long.
  JobConnection(boost::asio::io_context& io, rendezvous::Destination server,
                rendezvous::Enlist self, Handlers handlers,
                Milliseconds longest_outage = Milliseconds(10000));
  ~JobConnection();
  JobConnection(const JobConnection&) = delete;
  JobConnection& operator=(const JobConnection&) = delete;

  /// Tells how the job stands now, after everything that the server has received until the call,
  /// and what became of the worker with `label`.
  void ask_about(std::string label, std::function<void(const WorkerReport&)> answer);
  /// Tells how the job stands now; null where the server does not come back.
  void ask_status(std::function<void(const rendezvous::StatusReply*)> answer);
  /// A worker of this launcher has ended; `failure` and `pid`: as in WorkerEnded. Comes before a
  /// question.
  void tell_end(const std::string& label, const std::string& failure, std::int64_t pid);
  /// Asks for a worker on another host in place of one that failed; tells whether there will be
  /// one.
  void ask_for_replacement(std::function<void(bool)> answer);
  void request_stop();
  /// The workers with these labels are to leave the job at the next step boundary. `refused` is
  /// told why one may not.
  void request_removal(const std::vector<std::string>& labels,
                       const std::function<void(const std::string&)>& refused);
  /// A request whose answer is of no further interest.
  void request(const rendezvous::Message& message);
  /// Tells the server how many workers this launcher runs.
  void set_running(int count);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace elastic::launcher
