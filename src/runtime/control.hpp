#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "base/event_fd.hpp"
#include "base/handshake.hpp"
#include "base/status.hpp"
#include "base/thread_checker.hpp"
#include "base/unique_fd.hpp"
#include "collectives/transport/linker.hpp"
#include "coordinator/lane.hpp"
#include "elastic/options.hpp"
#include "rendezvous/client/client.hpp"
#include "runtime/backends.hpp"
#include "runtime/calls_under_way.hpp"
#include "runtime/commit_gate.hpp"
#include "runtime/join_request.hpp"
#include "runtime/participation.hpp"
#include "runtime/view_change_clock.hpp"

namespace elastic::runtime {

inline constexpr std::size_t kUnnamedLane = 0;
inline constexpr std::size_t kNamedLane = 1;

/// The events that interrupt a lane's wait for its links, in all views; see transport::Mesh.
using AbortEvents = std::array<std::shared_ptr<EventFd>, kLanes>;

/// The view as the functions of Context see it.
struct ViewSummary {
  std::shared_ptr<const coordinator::Members> members;
  int local_rank = 0;
  int local_size = 1;
  std::uint64_t admitted_at = 0;  ///< commits at which joiners were last admitted
};

/// The job's server and secret, and this worker's identity in the job.
struct Identity {
  std::string address;  ///< of the rendezvous server
  std::string job;
  Secret secret{};
  std::string incarnation;
  WorkerId id = 0;
  /// Generation of the last view of an earlier incarnation; none: this process was never a member.
  std::optional<std::uint64_t> last_generation = {};
  bool under_mpirun = false;
  /// See ServerLocation; kept while this worker may take part.
  std::shared_ptr<const UniqueFd> starter;
};

/// The control thread: keeps the connection to the rendezvous server, makes the links, and takes
/// the lanes from one view to the next. Participation has the state machine; this class executes
/// its effects. The thread never blocks and never runs a collective.
///
/// Functions marked "control" run on that thread. Any thread may call the others.
class Control : private Participation::Effects {
 public:
  /// `backends` must outlive it. `arena` is the memory that peers of this host may read.
  Control(Identity identity, Options options, const Backends& backends,
          std::shared_ptr<const transport::Arena> arena);
  ~Control() override;

  /// Connects, and waits for the first view, or for the news that the job is already running.
  Status start();
  /// True until this worker is a member.
  bool joining() const;
  /// The view in force; null while joining.
  std::shared_ptr<const ViewSummary> view() const;
  Tuning tuning() const { return backends_.tuning(); }
  const ViewChangeClock& view_changes() const { return view_change_clock_; }

  coordinator::Lane& lane(std::size_t index) { return *lanes_[index]; }
  CommitGate& gate() { return gate_; }
  CallsUnderWay& calls_under_way() { return calls_; }
  const Options& options() const { return options_; }
  const Identity& identity() const { return identity_; }

  /// Sends the state's layout to the server. A joiner is admitted after that, unless its line is
  /// too slow for `state_bytes` bytes.
  void send_ready(Layout layout, std::uint64_t state_bytes);
  /// The reason why this worker is no member any more, as far as it can know; otherwise ok. If this
  /// process may have been paused, waits until it has read what the server sent meanwhile: for two
  /// heartbeats or a new connection, and a few seconds at most. Ok while the server is away.
  Status check_membership();
  /// Waits until this worker is a member, or returns the reason why it cannot be.
  Status wait_until_member();
  /// Waits until this worker is no member any more, at most for `most`; returns the reason, or ok.
  Status wait_until_ended(Milliseconds most);
  /// This worker has the job's state from now on.
  void set_synced();
  /// Sets the slowest rank of the present view, as the ranks have found it
  /// (Options::compare_steps).
  void set_slowest(int rank);
  bool synced() const override;
  /// Says Bye at the job's end, and waits until this worker may go: until the other members have
  /// said it too, or a view without this worker is in force, or a deadline passes. With `unable`,
  /// the reason why this worker cannot go on, the others continue, and it does not wait for them to
  /// end.
  void leave(const std::string& unable = {});
  /// Says Bye and does not wait. `unable` is as for `leave`.
  void leave_at_once(const std::string& unable);
  /// Ends the whole job with `reason`, on every worker. Waits until the server has received it, or
  /// is away.
  void fail_job(const Status& reason);
  /// Leaves the job with `reason`. The others go on without this worker, and all its calls fail
  /// with the reason.
  void abandon(const Status& reason);
  /// Whether this worker has left because no view came in which to complete a call.
  bool left_after_timeout() const;
  /// From now on all calls fail, also those under way.
  void close();
  /// Closes, and ends the control thread with all its connections. Idempotent.
  void stop();

 private:
  // control
  bool is_in_job() const;
  void on_heartbeat();
  void on_message(const rendezvous::Message& message);
  void on_welcome(const rendezvous::Welcome& welcome);
  void on_farewell(const rendezvous::Farewell& farewell);
  void on_failure(const Status& failure);
  rendezvous::Heartbeat heartbeat() const;
  void warn_of_forgery(const ViewSummary& first);
  void on_connected(const rendezvous::View& view,
                    Result<std::vector<transport::Linker::LinksOfPeer>> links);

  // The effects that Participation asks for; control.
  void send(const rendezvous::Message& message) override;
  void freeze_lanes() override;
  void begin_lanes_at(const std::vector<std::uint64_t>& positions) override;
  void connect(const rendezvous::View& view) override;
  void cancel_connect() override;
  void watch_for_end(const rendezvous::Member& member) override;
  void forget_ends() override;
  void install(const rendezvous::View& view) override;
  Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit) override;
  void withdraw() override;
  void resume() override;
  bool paused_for(std::uint64_t round) const override;
  std::uint64_t commits() const override;
  std::vector<std::uint64_t> positions() const override;
  void end(const Status& reason) override;  // any thread

  const Identity identity_;
  const Options options_;
  const Backends& backends_;
  const std::shared_ptr<const transport::Arena> arena_;
  boost::asio::io_context io_;
  ThreadChecker control_thread_;
  CommitGate gate_;
  CallsUnderWay calls_;
  ViewChangeClock view_change_clock_;
  std::array<std::unique_ptr<coordinator::Lane>, kLanes> lanes_;
  AbortEvents abort_events_;

  // Owned by the control thread.
  std::unique_ptr<rendezvous::Client> client_;
  std::unique_ptr<transport::Linker> linker_;
  Participation participation_;
  JoinRequest application_;
  std::vector<transport::Linker::LinksOfPeer> links_;  // for the view to be installed next

  // Shared with the caller's threads; mutex_ protects it.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const ViewSummary> view_;
  bool welcomed_ = false;
  bool joining_ = false;
  bool synced_ = false;
  int slowest_ = -1;
  bool farewell_ = false;
  bool connected_ = false;
  Milliseconds heartbeat_period_{0};
  std::uint64_t heartbeats_ = 0;
  TimePoint last_heartbeat_;
  std::uint64_t all_read_from_ = 0;  // number of the heartbeat by which all messages of the server
                                     // were read
  Status ended_;
  bool abandoned_ = false;  // this worker left by itself, for the reason `ended_`

  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::thread thread_;
};

}  // namespace elastic::runtime
