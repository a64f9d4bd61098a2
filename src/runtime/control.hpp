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
#include "runtime/application.hpp"
#include "runtime/backends.hpp"
#include "runtime/calls_under_way.hpp"
#include "runtime/commit_gate.hpp"
#include "runtime/participation.hpp"
#include "runtime/view_change_clock.hpp"

namespace elastic::runtime {

inline constexpr std::size_t kUnnamedLane = 0;
inline constexpr std::size_t kNamedLane = 1;

/// What wakes a lane that waits for its links, in all views: see transport::Mesh.
using AbortEvents = std::array<std::shared_ptr<EventFd>, kLanes>;

/// The view as the caller's functions see it.
struct ViewSummary {
  std::shared_ptr<const coordinator::Members> members;
  int local_rank = 0;
  int local_size = 1;
  std::uint64_t admitted_at = 0;  ///< commits at which joiners were last admitted
};

/// Where the job is and who this worker is in it.
struct Identity {
  std::string address;  ///< of the rendezvous server
  std::string job;
  Secret secret{};
  std::string incarnation;
  WorkerId id = 0;
  bool under_mpirun = false;
  /// See ServerLocation; held for as long as this worker may take part.
  std::shared_ptr<const UniqueFd> starter;
};

/// The control thread: keeps the connection to the rendezvous server, makes the links, and takes
/// the lanes from one view to the next. Never blocks and never runs a collective.
///
/// Functions marked "control" run on that thread; all others may be called from any thread.
class Control : private Participation::Effects {
 public:
  /// `backends` outlive it. `arena` is what others of this host may read.
  Control(Identity identity, Options options, const Backends& backends,
          std::shared_ptr<const transport::Arena> arena);
  ~Control() override;

  /// Connects and waits for the first view, or to be told that the job is running already.
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

  /// Tells the server what this worker's state looks like; a joiner is admitted after that, unless
  /// its line is too slow for so many bytes.
  void send_ready(Layout layout, std::uint64_t state_bytes);
  /// What has ended this worker's membership, as far as it can know. Where this process may have
  /// stood still, waits until it has read what the server sent meanwhile: two heartbeats, or a new
  /// connection, for a few seconds at most. Ok while the server is away.
  Status check_membership();
  /// Waits until this worker is a member, or what prevents it.
  Status wait_until_member();
  /// This worker has the job's state from now on.
  void set_synced();
  /// Of the present view, by what the ranks have told each other (Options::compare_steps).
  void set_slowest(int rank);
  bool synced() const override;
  /// Says goodbye at the job's end and waits until the job lets go of this worker: until the other
  /// members have said so too, or a view without it is in force, for a while at most. With
  /// `unable`, why this worker cannot go on, it is not the job's end, and the others are not waited
  /// for.
  void leave(const std::string& unable = {});
  /// Says goodbye without waiting for anything; `unable` as for `leave`.
  void leave_at_once(const std::string& unable);
  /// The job as a whole cannot go on, for `reason`: it ends with that on every worker. Waits until
  /// the server has heard of it, or is away.
  void fail_job(const Status& reason);
  /// This worker cannot go on, for `reason`: the others go on without it, and every call fails with
  /// that.
  void abandon(const Status& reason);
  /// This worker has left because no view came in which to complete a call.
  bool left_after_timeout() const;
  /// From now on every call fails; what is under way ends.
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

  // What Participation asks for; control.
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
  Application application_;
  std::vector<transport::Linker::LinksOfPeer> links_;  // made for the view that is installed next

  // Shared with the caller's threads.
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
  std::uint64_t all_read_from_ = 0;  // by which heartbeat the server's messages were read
  Status ended_;
  bool abandoned_ = false;  // by this worker, with `ended_`

  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::thread thread_;
};

}  // namespace elastic::runtime
