#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/layout.hpp"
#include "rendezvous/protocol/figures.hpp"
#include "rendezvous/protocol/view.hpp"
#include "rendezvous/protocol/view_change.hpp"

namespace elastic::rendezvous {

/// Both sides must have the same; checked in the first message of a connection.
inline constexpr int kProtocolVersion = 9;

/// When a worker wants to hear of a stall: a call that some ranks are in and others do not enter.
struct StallLimits {
  std::uint64_t warning_ms = 0;  ///< after which it is to be warned; 0: it does not want to be
  std::uint64_t timeout_ms = 0;  ///< after which the job is to fail; 0: never

  bool operator==(const StallLimits&) const = default;
};

/// The call that a member is in, in one lane. `kind` and `tensor` are empty while it is in nothing
/// there.
struct CallUnderWay {
  std::string kind;    ///< such as "allreduce", while an operation of the lane is under way
  std::string tensor;  ///< the first in the order of names of the named calls under way
  /// What users call it, such as "alltoall 'x' of the group 'per host'"; none without `tensor`.
  std::optional<std::string> text = {};
  /// The ranks of the group that makes it: first and last of each range, ascending. None: all
  /// members, or more ranges than fit.
  std::optional<std::vector<std::uint64_t>> ranks = {};

  bool operator==(const CallUnderWay&) const = default;
};

// ---- worker to server -------------------------------------------------------------------------

/// First message of every connection, and so again when a broken one was replaced.
struct Register {
  std::string incarnation;
  Endpoints endpoints;
  std::int64_t pid = 0;
  std::string label;
  std::int64_t order = -1;  ///< rank wished for in the first view (the launcher's slot), -1: none
  /// Of the latest view that was announced to it; 0: was never a member. A server that lacks this
  /// view asks one of its members for it by ViewRequest.
  std::uint64_t generation = 0;
  /// Whether the worker has been asked to freeze in that view, or has reported there, and waits for
  /// the next view; "stands_still" in the JSON.
  bool in_round = false;
  std::optional<StallLimits> stall = {};  ///< none: of a release that does not know Warning
  /// Generation of the last view of which the same process was a member as an earlier incarnation;
  /// none: it never was.
  std::optional<std::uint64_t> last_generation = {};
  /// Options::all_linked, by which workers know which of their links the others begin with; none:
  /// of an earlier release.
  std::optional<std::uint64_t> all_linked = {};
  /// If the job gives this worker up because it does not answer, its process is to be ended: other
  /// members of its host wait for that (BackendModule::abort_waits_for_peers). None: it may wake
  /// up, and join again.
  std::optional<bool> end_if_silent = {};
};

/// The worker is alive. Its positions also prove that others are (membership/activity_proof.hpp).
struct Heartbeat {
  std::uint64_t generation = 0;          ///< of the latest view that was announced to it
  std::vector<std::uint64_t> positions;  ///< per lane: operations completed
  std::uint64_t commits = 0;             ///< steps committed
  bool synced = false;                   ///< has the job's state
  int slowest =
      -1;  ///< rank with the longest step of its own when steps were last compared, -1: none
  std::optional<std::vector<CallUnderWay>> calls = {};  ///< per lane; none: of an earlier release
  std::optional<WorkerFigures> figures = {};            ///< every two seconds or so
};

/// The latest view that was announced to this worker. Answer to ViewRequest.
struct KnownView {
  SharedView view = std::make_shared<const View>();
};

/// A link to `incarnation` failed in `generation`.
struct Suspect {
  std::uint64_t generation = 0;
  std::string incarnation;
  std::string reason;
  bool never_linked = false;  ///< the link could not be made in that view, rather than broke
};

/// Answer to a deferred Freeze: this member will stop at that commit, or has already passed it.
struct Promise {
  std::uint64_t round = 0;
  bool accepted = false;
  std::uint64_t commits = 0;
};

/// The training thread has stopped at the step boundary that was promised. Nothing is frozen: named
/// operations go on until the round that follows when all members have stopped.
struct Paused {
  std::uint64_t round = 0;
  std::uint64_t commits = 0;
};

/// The binding word of a frozen member: it sends and completes nothing of `generation` any more.
struct Report {
  std::uint64_t generation = 0;
  std::uint64_t round = 0;
  struct Lane {
    std::uint64_t position = 0;
    std::string needs;  ///< incarnation without which the operation in flight cannot be replayed
    bool operator==(const Lane&) const = default;
  };
  std::vector<Lane> lanes;
  std::uint64_t commits = 0;
  bool synced = false;
  bool at_boundary = false;  ///< its training thread is stopped after `commits` steps, and stays so
                             ///< until the next view
};

/// The worker has called `run`; `layout` describes its state. A joiner asks to be admitted with it.
struct Ready {
  Layout layout;
  std::uint64_t transfer_ms = 0;  ///< a joiner's: what receiving the state would take it, measured
};

/// The worker wants to leave. `done`: the job has reached its end; otherwise only it leaves.
struct Bye {
  bool done = false;
  /// Why the job as a whole cannot go on, or, with `unable`, why this worker cannot; mostly empty.
  std::string failure = {};
  /// This worker cannot go on: it counts as lost, not as one that chose to go.
  bool unable = false;
  /// With `unable`: by the way it was started, which others may share.
  std::optional<bool> setup = {};
};

/// The process of `incarnation` has ended: it accepts no data connections any more. Answer to
/// Check.
struct Gone {
  std::string incarnation;
  std::string reason;
};

// ---- server to worker -------------------------------------------------------------------------

/// Answer to Register. `joining` is true where a job is already running: no view comes before
/// Ready. May come again where that turns out later.
struct Welcome {
  bool joining = false;
  std::int64_t heartbeat_ms = 50;
  std::optional<Member> donor;  ///< to measure the line from, before Ready; none: no need to
};

/// To a joiner that is not admitted for now, because of the `transfer_ms` in its Ready. It measures
/// again after a while, and says Ready again.
struct Wait {
  std::string reason;
  std::optional<Member> donor;  ///< as in Welcome
};

/// A final no, before the server closes the connection.
struct Refuse {
  std::string reason;
};

/// Stop and report. With `at_commit` 0 at once; otherwise when that many steps are committed, which
/// must first be promised. A later round cancels an earlier one.
struct Freeze {
  std::uint64_t generation = 0;
  std::uint64_t round = 0;
  std::uint64_t at_commit = 0;
  std::string reason;
};

/// The server has lost its connections with these members. A member that finds the process of one
/// of them ended answers with Gone.
struct Check {
  std::vector<std::string> incarnations;
  /// To a worker that is no member, and knows no view: these members, which are on its host.
  std::optional<std::vector<Member>> members = {};
};

/// Announces `view`.
struct Announce {
  SharedView view = std::make_shared<const View>();
  std::optional<std::int64_t> heartbeat_ms = {};  ///< period from now on; none: as before
};
/// Announces a view to a worker that was announced the one before it.
struct AnnounceChange {
  ViewChange change;
  std::optional<std::int64_t> heartbeat_ms = {};  ///< as in Announce
};
/// The server that was started again does not know the view of this generation, which this worker
/// has named in its Register.
struct ViewRequest {
  std::uint64_t generation = 0;
};

/// This worker is not in the view any more and may go. Answer to Bye, or told to leave.
struct Farewell {
  enum class Reason { kDone, kRemoved, kStopped, kEvicted };
  Reason reason = Reason::kDone;
  std::string text;
};

/// The job cannot go on.
struct Fail {
  std::string reason;
  bool misfit = false;                 ///< the workers' states or options do not fit together
  std::optional<bool> timed_out = {};  ///< a stall has lasted for longer than the job allows
  /// The workers made different calls, or an object stays different. With `misfit`, which releases
  /// that do not know this go by.
  std::optional<bool> mismatch = {};
};

/// For the worker's log. Only to one whose Register has `stall`.
struct Warning {
  std::string text;
};

/// Workers are to write down their latest operations, for a person that looks for a stall. From a
/// control client to the server, and from the server to all members.
struct DumpRequest {
  std::string reason;  ///< for people
};

// ---- control (elasticrun ctl, and the launcher itself) ------------------------------------------

struct StatusRequest {};
/// Another `count` workers are wanted; launchers with room start them.
struct AddRequest {
  int count = 1;
  bool or_fewer = false;  ///< as many as there is room for
  bool replaces = false;  ///< in place of workers that have ended: the job becomes no larger
};
/// A host is to run at most `slots` workers; with 0 all its workers leave the job. Where others
/// have room they start the workers that it loses, and these come first.
struct LimitRequest {
  std::string host;  ///< its name, or the number of its launcher
  int slots = 0;
  std::optional<std::int64_t> deadline_ms{};  ///< workers that are there after it are ended
};
/// The first view needs no more than `workers`.
struct ExpectRequest {
  int workers = 1;
};
/// The worker of `rank` is to leave at the next step boundary.
struct RemoveRequest {
  int rank = 0;
  std::optional<std::string>
      label{};  ///< instead of the rank, which a view change may give another
};
/// The job is to stop at the next step boundary.
struct StopRequest {};
/// A host is to be in quarantine no more, and its failures forgotten.
struct PardonRequest {
  std::string host;  ///< its name, or the number of its launcher
};

/// No worker is started on a host meanwhile.
struct HostQuarantine {
  std::string why;  ///< for people
  std::int64_t left_ms = 0;
};

struct StatusReply {
  std::string job;
  std::string phase;  ///< "forming", "recovering", "running", "changing", "done", "failed"
  View view;
  int min_np = 1;
  int max_np = 0;
  std::optional<int> initial_np;  ///< workers that the first view waits for; none: not told
  struct Waiting {
    std::string incarnation;
    std::string label;
    std::int64_t pid = 0;
    bool ready = false;
    std::string waits_for;  ///< why it is kept waiting, for people; mostly empty
  };
  std::vector<Waiting> joiners;
  std::uint64_t view_changes = 0;        ///< since the server was started
  std::vector<double> heartbeat_age_ms;  ///< per member
  std::uint64_t commits = 0;             ///< steps that the job has committed
  double steps_per_second = 0;           ///< of the last seconds
  int slowest = -1;                      ///< rank, as in Heartbeat
  struct Progress {
    std::uint64_t commits = 0;     ///< steps that it has committed
    std::uint64_t operations = 0;  ///< collectives that it has completed, in all lanes
    bool synced = false;
    bool connected = false;
    std::optional<WorkerFigures> figures{};  ///< none: it has not told them yet
  };
  std::vector<Progress> progress;  ///< per member, by its last heartbeat
  bool joinable = false;           ///< as in JobState
  struct Departed {
    std::string label;
    /// "removed" on request, "finished" before the others, "early" where these then trained on,
    /// "unable" to go on, "evicted", or "lost".
    std::string how;
    std::string why;  ///< of one that was early, unable, evicted or lost, for people
  };
  std::vector<Departed> departed;  ///< the latest of each label that no worker has had since
  struct Launcher {
    int number = 0;
    std::string host;
    int slots = 0;
    int running = 0;
    bool connected = false;
    std::optional<HostQuarantine> quarantine{};
  };
  std::optional<std::vector<Launcher>> launchers{};  ///< by number; none: not told
  std::optional<JobHistory> history{};               ///< none: not told
};
/// Outcome of Add, Remove and Stop requests.
struct Done {
  bool ok = true;
  std::string text;
};
/// A launcher gives its name, on each connection, and again when its numbers change.
struct Enlist {
  std::string id;                     ///< drawn by the launcher, the same on all of its connections
  std::string host;                   ///< for people; "": it only watches, and runs no workers
  int slots = 0;                      ///< workers that it runs at most
  int running = 0;                    ///< workers that it runs
  std::int64_t spawned = 0;           ///< workers that it was asked for and has dealt with, in all
  std::optional<int> number{};        ///< what an earlier server has told it, or its starter
  bool begun = false;                 ///< some server has told it that the job runs
  std::optional<bool> ends_silent{};  ///< none: of a release that does not know EndWorker
};
/// The answer to the first Enlist of a connection.
struct Enlisted {
  int number = 0;   ///< this launcher's in the job, which tells its workers from those of others
  std::string job;  ///< the job's name
  bool quarantined = false;  ///< as in Quarantined
  /// Whether the server may be started again after its end: not one that lives in an elasticrun.
  std::optional<bool> returns{};
};
/// To a launcher: its host is in quarantine, or no more. It starts no worker meanwhile.
struct Quarantined {
  bool on = false;
};
/// A worker of this launcher has ended.
struct WorkerEnded {
  std::int64_t serial = 0;  ///< 1, 2, ... of this launcher, so that none counts twice
  std::string label;
  std::string failure;  ///< how it failed, for people; "": it did not, or was told to end
  /// Of the process that has ended, as its launcher sees it; 0: none was started.
  std::int64_t pid = 0;
};
/// To a launcher with `ends_silent` in its Enlist: the job has given up a worker of its own, which
/// does not answer, and other members wait for the end of its process. Comes again on the next
/// connection until that has ended.
struct EndWorker {
  std::string label;
  std::int64_t pid = 0;  ///< of the process, as in its Register
  std::string why;       ///< it was given up, for people
};
/// To launchers: how many workers were requested of this launcher so far, in all, so that a
/// launcher that missed a message starts the rest.
struct Spawn {
  std::int64_t total = 0;
};
/// To a launcher: it is to run at most `slots` workers, as in LimitRequest.
struct Limited {
  int slots = 0;
  std::optional<std::int64_t> deadline_ms{};
};
/// To launchers: how the job stands, sent when it changes.
struct JobState {
  std::string phase;
  std::string text;
  bool joinable = false;  ///< a joiner can become a member: some member is in `run`, and the
                          ///< journal has room
  bool end_workers =
      false;             ///< with "done": workers do not hear of the end, the launcher ends them
  bool stopped = false;  ///< with "done": it was stopped on request
  /// With "done" and "failed": what became of the workers. A launcher may outlive the server.
  std::optional<StatusReply> last{};
};

/// The last message to the members of a job that is over.
using LastWord = std::variant<Farewell, Fail>;

using Message =
    std::variant<Register, Heartbeat, Suspect, Promise, Paused, Report, Ready, Bye, Welcome, Wait,
                 Refuse, Freeze, Announce, Farewell, Fail, StatusRequest, AddRequest, RemoveRequest,
                 StopRequest, StatusReply, Done, Spawn, JobState, Check, Gone, Warning, Enlist,
                 Enlisted, LimitRequest, ExpectRequest, Limited, PardonRequest, Quarantined,
                 WorkerEnded, AnnounceChange, ViewRequest, KnownView, DumpRequest, EndWorker>;

}  // namespace elastic::rendezvous
