#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/launcher/exit_status.hpp"

namespace elastic::launcher {

struct SupervisionOptions {
  int np = 1;
  int min_np = 1;
  int max_np = 1;                ///< workers that run here at most
  int max_restarts = 3;          ///< of all slots together
  bool joined = false;           ///< the job is not this launcher's: others run it, too
  bool sigterm_repeats = false;  ///< a second SIGTERM means no more than the first, as of Slurm
  bool waits = false;            ///< without workers, too, it waits for some, to the job's end
  Milliseconds start{60000};     ///< for which the job waits for its first workers
  Milliseconds below_minimum{60000};  ///< for which the job waits with fewer than min_np
  /// For which a joined launcher without workers waits for a server that is gone.
  Milliseconds outage{600000};
  Milliseconds drain{30000};        ///< from a stop request to SIGTERM
  Milliseconds least_notice{5000};  ///< from a notice to SIGTERM, also where less time is left
  Milliseconds exit{300000};        ///< from the job's end to SIGTERM
  Milliseconds exit_notice{5000};   ///< from the job's end to the naming of those that still run
  Milliseconds kill_grace{5000};    ///< from SIGTERM to SIGKILL
};

/// The job's phase as far as it matters here; a view change is part of running.
enum class JobPhase : std::uint8_t { kForming, kRunning, kDone, kFailed };
JobPhase parse_job_phase(std::string_view phase);

/// The server's answer after a worker's exit, so that a worker that ends right
/// after the job is done is not taken for one that must be replaced.
struct WorkerReport {
  /// How the worker left the job while that went on. Not: it is still a member, or never was one.
  enum class Left : std::uint8_t { kNot, kRemoved, kFinished, kEarly, kUnable, kEvicted, kLost };

  JobPhase phase = JobPhase::kForming;
  bool joinable = false;  ///< a replacement could become a member now
  Left left = Left::kNot;
  bool member = false;   ///< of the latest view
  std::string why = {};  ///< of one that ended early, was unable to go on, or was evicted
  /// Why, by slot: of all workers that said the job was at its end, and were wrong.
  std::map<int, std::string> ended_early = {};
  bool others = true;              ///< the latest view has members on other hosts
  bool several_launchers = false;  ///< start the job's workers
  bool unanswered = false;  ///< the server does not come back: this is what was last known of it
};

// ---- events -----------------------------------------------------------------------------------
struct WorkerExited {
  int slot = 0;
  ExitStatus status;
  WorkerReport report;
};
struct WorkerNotStarted {
  int slot = 0;
  std::string reason;
};
struct JobStateChanged {
  JobPhase phase = JobPhase::kForming;
  std::string text;
  bool joinable = false;
  bool end_workers = false;  ///< the job was stopped, and its workers do not hear of that
  bool recovering = false;   ///< the server has been started again, and awaits the members
  bool stopped = false;      ///< the job is done because it was stopped
};
/// This host is in quarantine, or no more: no worker is started here meanwhile.
struct QuarantineChanged {
  bool on = false;
};
/// Another host starts a worker in place of the one that failed here.
struct WorkerReplaced {
  int slot = 0;
};
/// The job has given up this slot's worker, which does not answer, and other workers wait for the
/// end of its process.
struct WorkerSilent {
  int slot = 0;
  std::string process;  ///< its number, for people
  std::string why;      ///< it was given up
};
struct SpawnWanted {
  int count = 1;
};
/// So many workers run here at most from now on; 0: all leave, within `deadline`.
struct SlotsChanged {
  int slots = 0;
  std::optional<Milliseconds> deadline{};  ///< none: as for a signal
};
/// The server does not let a worker go: too few would be left, or it is no member yet.
struct RemovalRefused {
  std::string why;
  bool others = true;  ///< members of hosts that are not to leave would go on with the job
};
/// The machine is to end. Its workers leave, or the job stops if that is this launcher's.
struct NoticeCame {
  std::string text;
  Milliseconds left{};
  Milliseconds late{};  ///< since the time of the notice, if that is past
};
/// The server has not been reached for so long, and may never be again.
struct ServerMissing {
  Milliseconds lost_for{};
};
/// The process that started this launcher is gone, or has hung up.
struct StarterGone {};
struct SignalReceived {
  int number = 0;
};
struct TimePassed {};
using Event = std::variant<WorkerExited, WorkerNotStarted, JobStateChanged, QuarantineChanged,
                           WorkerReplaced, WorkerSilent, SpawnWanted, SlotsChanged, RemovalRefused,
                           NoticeCame, ServerMissing, StarterGone, SignalReceived, TimePassed>;

// ---- actions ----------------------------------------------------------------------------------
struct StartWorker {
  int slot = 0;
  int attempt = 0;  ///< how often this slot was started before
};
/// To every running worker's process group.
struct SignalWorkers {
  int number = 0;
};
/// SIGKILL to one worker's process group.
struct KillWorker {
  int slot = 0;
};
/// Ask the server to end the job at the next step boundary.
struct RequestStop {};
/// Ask the server to drain this host: it answers by SlotsChanged, once replacements have come.
struct RequestDrain {
  Milliseconds deadline{};
};
/// Ask the server to let these workers go at the next step boundary.
struct RequestRemoval {
  std::vector<int> slots;
};
/// Ask the server for a worker on another host in place of this one. WorkerReplaced: it has one.
struct RequestReplacement {
  int slot = 0;
};
/// One line for the user.
struct Say {
  std::string text;
};
/// Say which workers are running, with `before` and `after` around their names.
struct NameRunning {
  std::string before;
  std::string after;
};
/// The last lines that the slot's worker wrote.
struct ShowOutput {
  int slot = 0;
  std::string how;  ///< how that worker ended
};
/// Always the last action; no worker is running any more.
struct Finish {
  int exit_code = 0;
  std::string reason;  ///< for the user; empty where there is nothing to say
  /// The job had begun, and failed by itself: another one may go on from what its workers saved.
  bool may_begin_anew = false;
};
using Action =
    std::variant<StartWorker, SignalWorkers, KillWorker, RequestStop, RequestDrain, RequestRemoval,
                 RequestReplacement, Say, NameRunning, ShowOutput, Finish>;

/// The end of a launcher that has joined a job which was over before; none: the job is not over.
/// No worker is started: it would hear the same. Code 0 if the job is done, since a host that
/// comes when it is needed no more has not failed. `server_is_known`: the user has named the
/// server, at `address`, and may have meant another training.
std::optional<Finish> end_of_latecomer(const JobStateChanged& job, const std::string& address,
                                       bool server_is_known);

/// The launcher's decisions when workers end, the job changes or the user interrupts. Without I/O;
/// owned by the launcher's thread.
class Supervision {
 public:
  explicit Supervision(SupervisionOptions options) : options_(options) {}

  /// `server_returns`: a server that ends may be started again.
  std::vector<Action> begin(bool in_quarantine = false, bool server_returns = true);
  std::vector<Action> decide(const Event& event, TimePoint now);
  /// When TimePassed is due; TimePoint::max() for never.
  TimePoint next_tick() const;
  /// Whether workers are told to end, so that it means nothing how they do.
  bool ends_workers() const { return ending() || stopped_; }

 private:
  struct Slot {
    bool running = false;
    int starts = 0;
    bool saw_job = false;     ///< its last worker ran while the job did
    std::string failure;      ///< how its last worker failed, empty if it did not
    int failures_before = 0;  ///< how many had failed before
    bool waits = false;       ///< to be started once it can join, and no quarantine is in the way
    bool finished = false;    ///< was with the job to its end
    bool unseen = false;      ///< so it seems: its end, with code 0, was seen by no server
    bool removed = false;     ///< left on request
    std::string outcome;      ///< otherwise: what became of its worker
    bool unjoined = false;    ///< its last worker ended well and was never a member
  };
  using Actions = std::vector<Action>;
  /// Without the server: until then it may be about to come back.
  static constexpr Milliseconds kServerGone{10000};

  void on(const WorkerExited& event, TimePoint now, Actions& actions);
  void on(const WorkerNotStarted& event, TimePoint now, Actions& actions);
  void on(const JobStateChanged& event, TimePoint now, Actions& actions);
  void on(const QuarantineChanged& event, TimePoint now, Actions& actions);
  void on(const WorkerReplaced& event, TimePoint now, Actions& actions);
  void on(const WorkerSilent& event, TimePoint now, Actions& actions);
  void on(const SpawnWanted& event, TimePoint now, Actions& actions);
  void on(const SlotsChanged& event, TimePoint now, Actions& actions);
  void on(const RemovalRefused& event, TimePoint now, Actions& actions);
  void on(const NoticeCame& event, TimePoint now, Actions& actions);
  void on(const ServerMissing& event, TimePoint now, Actions& actions);
  void on(const StarterGone& event, TimePoint now, Actions& actions);
  void on(const SignalReceived& event, TimePoint now, Actions& actions);
  void on(const TimePassed& event, TimePoint now, Actions& actions);

  void start(int slot, Actions& actions);
  void restart(int slot, const std::string& why, Actions& actions);
  void start_waiting(Actions& actions);
  void drain(Milliseconds deadline, TimePoint now, Actions& actions);
  void worker_failed(int slot, const std::string& how, Actions& actions, bool may_restart = true);
  void worker_missed(int slot, const std::string& how, const WorkerReport& report);
  std::string without_restarts() const;
  std::string when_joinable() const;
  void removed_worker_failed(int slot, const std::string& how, Actions& actions);
  void worker_never_joined(int slot, Actions& actions);
  void note_early_ends(const WorkerReport& report);
  void worker_overdue(int slot, const WorkerReport& report);
  void start_failed(int slot, const std::string& how, TimePoint now, Actions& actions);
  void worker_ended(int slot, const WorkerReport& report, Actions& actions);
  void terminate(TimePoint now, Actions& actions);
  void await_exits(TimePoint now);
  void end_overdue(const SignalReceived& event, TimePoint now, Actions& actions);
  void finish(Actions& actions);
  /// Where the workers of a joined launcher have left the job; otherwise none.
  std::optional<Finish> departure() const;
  /// Slots whose last worker failed, in the order in which they did: the first is the likely cause.
  std::vector<int> failed_slots() const;
  int failure_code() const;
  std::string failure_reason() const;
  /// The workers that ended well and were never members; empty where there are none.
  std::string unjoined_workers() const;
  /// Empty where as many workers finished as began.
  std::string missing_workers() const;
  bool any_worker_finished() const;
  bool any_end_unseen() const;
  bool any_worker_waits() const;
  Milliseconds longest_outage() const;
  void limit_wait(TimePoint now);
  void end_wait(Actions& actions);
  bool all_workers_left() const;
  /// Whether it goes on without workers.
  bool stays() const;
  std::vector<int> running_slots() const;
  int running() const;
  bool server_gone() const { return server_lost_for_ >= kServerGone; }
  bool restarts_left() const { return restarts_ < options_.max_restarts; }
  bool ending() const {
    return signals_ > 0 || drained_ || notice_over_ || failed_to_start_ ||
           phase_ == JobPhase::kDone || phase_ == JobPhase::kFailed;
  }

  SupervisionOptions options_;
  std::map<int, Slot> slots_;
  JobPhase phase_ = JobPhase::kForming;
  std::string phase_text_;
  bool joinable_ = false;
  bool has_begun_ = false;        ///< the job; it may be over since
  bool stopped_ = false;          ///< on a request that the workers did not hear of
  bool failed_to_start_ = false;  ///< a worker ended by itself before the first view
  int restarts_ = 0;
  int failures_ = 0;
  int signals_ = 0;  ///< received from the user
  int first_signal_ = 0;
  bool several_launchers_ = false;
  bool stopped_after_done_ = false;      ///< by the first signal
  bool cut_short_ = false;               ///< workers were sent SIGTERM
  bool drained_ = false;                 ///< no worker is to run here any more
  bool noticed_ = false;                 ///< the machine is to end
  bool notice_over_ = false;             ///< its workers were told to end at the time of the notice
  std::set<std::string> told_refusals_;  ///< why workers were not let go
  /// Until then others may join elsewhere, and the job goes on with them.
  TimePoint stops_job_at_ = TimePoint::max();
  bool stops_job_ = false;    ///< its last workers run here, and are to leave
  bool job_stopped_ = false;  ///< the job is done because it was stopped
  bool starter_gone_ = false;
  bool others_ = true;  ///< the job had members on other hosts when the last worker here ended
  Milliseconds server_lost_for_{0};
  bool recovering_ = false;
  bool server_returns_ = true;
  /// The thing that a launcher waits for that has no worker, and one to start.
  enum class Wait : std::uint8_t { kNone, kServer, kMembers };
  Wait wait_ = Wait::kNone;
  TimePoint wait_until_ = TimePoint::max();
  bool waited_in_vain_ = false;  ///< for the server
  bool quarantined_ = false;
  bool replaced_ = false;  ///< some worker, on another host
  bool failed_after_done_ = false;
  bool finished_ = false;
  bool overdue_ = false;  ///< the job has ended, and what still runs is ended for that
  TimePoint notice_at_ = TimePoint::max();
  TimePoint terminate_at_ = TimePoint::max();
  TimePoint kill_at_ = TimePoint::max();
};

}  // namespace elastic::launcher
