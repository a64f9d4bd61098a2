#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rendezvous/membership/activity_proof.hpp"
#include "rendezvous/membership/early_leavers.hpp"
#include "rendezvous/membership/liveness.hpp"
#include "rendezvous/membership/membership.hpp"
#include "rendezvous/membership/silent_members.hpp"
#include "rendezvous/membership/stalls.hpp"
#include "rendezvous/membership/step_rate.hpp"

namespace elastic::rendezvous {

/// The state of a Membership, and its rules. An event changes facts; `advance` then draws the
/// conclusions. Each rule is thus written once, whichever event makes it apply.
///
/// Not thread-safe: belongs to the thread of its Membership.
class Membership::State {
 public:
  State(MembershipOptions options, RecoveredState memory);

  Decision decide(const Event& event, TimePoint now);
  TimePoint next_tick() const { return due_; }
  Phase phase() const;
  const View& view() const { return view_; }
  const Member* member(const std::string& incarnation) const;
  bool leaves(const std::string& incarnation) const;
  std::size_t expected_workers() const;
  StatusReply status(TimePoint now) const;
  double steps_per_second(TimePoint now) const { return step_rate_.per_second(now); }
  bool joinable() const { return joinable_; }
  bool ends_workers() const { return ends_workers_; }
  bool stopped() const { return over_ && end_.reason == Farewell::Reason::kStopped; }
  const std::optional<LastWord>& earlier_end() const { return earlier_end_; }

 private:
  /// A worker that has registered: it waits for the first view, is a member, or is a joiner.
  struct Worker {
    Register registration;
    std::uint64_t arrival = 0;
    std::optional<Layout> layout;
    Milliseconds transfer{0};   ///< estimated time to receive the state
    bool told_to_wait = false;  ///< since its last Ready
    bool removing = false;      ///< leaves at the next step boundary; at once if there are none
    bool untold = false;        ///< has come back, and has yet to say whether it is in `run`
    bool said_bye = false;
    bool done = false;                     ///< its Bye said that the job is at its end
    bool leaving = false;                  ///< leaves in the next immediate round
    bool unable = false;                   ///< its Bye said that it cannot go on
    std::string why;                       ///< reason of `unable` or of its eviction
    std::string ended;                     ///< proof that its process has ended; mostly empty
    TimePoint back_at{};                   ///< time of its last registration
    Heartbeat heartbeat;                   ///< the latest one
    std::optional<WorkerFigures> figures;  ///< the latest ones, which few heartbeats have
  };

  /// A member that has lost its connection and may come back.
  struct Absence {
    TimePoint since{};
    std::string why;
    std::set<std::string> asked = {};  ///< members that were asked whether its process has ended
    bool ask = true;                   ///< others are to be asked
    std::string asked_joiner = {};     ///< of its host, that was asked the same; "": none
  };
  /// Most members were disconnected at the same time, or one while the others were silent: the
  /// network or the server has failed. Lasts until all are back or given up.
  struct Outage {
    TimePoint since{};
    std::optional<TimePoint> first_connected;  ///< since when at least one member is heard again
  };

  /// One attempt at a view change, from the freeze to the next view. With `at_commit` 0 it is
  /// immediate: members freeze and report. Otherwise it is deferred: training threads pause at that
  /// commit, and then an immediate round follows.
  struct Round {
    std::uint64_t number = 0;
    std::uint64_t at_commit = 0;
    TimePoint started{};
    std::unordered_set<std::string> expected;
    std::unordered_set<std::string> paused;  ///< deferred
    std::map<std::string, Report> reports;   ///< immediate
    bool lost_one = false;                   ///< one of `expected` has gone

    bool deferred() const { return at_commit != 0; }
    bool complete() const {
      return (deferred() ? paused.size() : reports.size()) == expected.size();
    }
    bool at_boundary() const;
  };

  /// The state of a server that was started again, until it has decided which view the job is in.
  /// `view_` is empty meanwhile.
  struct Recovery {
    std::optional<View> journaled = {};
    std::optional<TimePoint> since = {};  ///< when the first worker of the job came back
    bool told_of_joiners = false;
    std::vector<std::pair<std::string, Suspect>> suspicions = {};  ///< with the reporting members
    std::uint64_t highest = 0;  ///< the greatest generation that a worker has reported
    std::map<std::uint64_t, SharedView> told = {};    ///< by workers, by generation
    std::map<std::uint64_t, std::string> asked = {};  ///< workers to tell the view of a generation
  };

  // membership.cpp: events to facts
  void on(const Registered& event);
  void on(const Received& event);
  void on(const ConnectionLost& event);
  void on(const ProcessEnded& event);
  void on(const RemoveWorker& event);
  void on(const StopJob& event);
  void on(const ExpectWorkers& event);
  void on(const Tick& event);
  void on_message(const std::string& from, const Heartbeat& message);
  void on_message(const std::string& from, const Suspect& message);
  void on_message(const std::string& from, const Promise& message);
  void on_message(const std::string& from, const Paused& message);
  void on_message(const std::string& from, const Report& message);
  void on_message(const std::string& from, const Ready& message);
  void on_message(const std::string& from, const Bye& message);
  void on_message(const std::string& from, const Gone& message);
  void on_message(const std::string& from, const KnownView& message);
  template <typename Other>
  void on_message(const std::string& from, const Other& message);
  void keep_requests();
  void forget_requests();

  // arrivals.cpp: the first view, layouts, joiners, latecomers
  bool tell_that_it_is_over(const Registered& event);
  void welcome(const std::string& incarnation);
  int first_view_size() const;
  bool try_form();
  void form();
  bool links_alike(const std::vector<const Worker*>& first);
  bool refuse_other_links(const std::string& incarnation);
  void compare_layouts();
  void compare_layout(const std::string& incarnation);
  bool too_slow(const Worker& worker) const;
  std::string waits_for(const Worker& worker) const;
  std::vector<const Worker*> admissible() const;
  std::optional<Member> next_donor(const std::string& joiner);
  void send_wait_reasons();
  std::size_t room() const;

  // recovery.cpp: after a restart of the server
  void start_recovery();
  bool try_recover();
  Milliseconds return_window() const;
  void note_reported_view(const std::string& incarnation);
  void ask_for_view(std::uint64_t generation, const std::string& incarnation);
  bool is_awaited(std::uint64_t generation) const;
  const View* known_view(std::uint64_t generation) const;
  const View* newest_known() const;
  const View* adoptable();
  std::size_t count_back(const View& view, bool in_this_view) const;
  bool missing_are_suspected(const View& view) const;
  bool any_worker_of_the_job() const;
  bool begin_again_with_joiners();
  void begin_again(const std::string& why);
  bool any_worker_has_view() const;
  void adopt(View view);
  bool was_announced_to(const std::string& incarnation) const;
  void bring_up_to_date(const std::string& incarnation);
  void raise_floor(std::uint64_t floor);

  // rounds.cpp: view changes
  void advance();
  bool advance_once();
  bool advance_immediate_round();
  bool advance_deferred_round();
  bool must_wait_for_joiners() const;
  bool wants_immediate() const;
  bool wants_boundary() const;
  void start_round(std::uint64_t at_commit, const std::string& reason);
  void withdraw_removals();
  const Worker* last_with_state() const;
  void conclude();
  void announce(View next);
  void enter(View view);
  Announce announcement_of(const View& view) const;
  std::string cause_of(const View& next) const;

  enum class Departure { kFailed, kEvicted, kLeft };

  // absence.cpp: members that are disconnected
  void disconnect(const std::string& incarnation, const std::string& why);
  void reconnect(const std::string& incarnation);
  void note_first_connected();
  void begin_outage(const std::string& reason);
  void end_outage_if_over();
  bool is_cut_off() const { return outage_ && !outage_->first_connected; }
  TimePoint awaited_until(const Absence& absence) const;
  void give_up_absent(const std::string& incarnation, Departure how, const std::string& what);
  void give_up_ended(const std::string& incarnation, const std::string& proof);
  void expire_absences();
  void ask_about_absent();
  void ask_joiners_about_absent();
  std::set<std::string> members_to_ask(const std::string& absent) const;
  bool is_absent(const std::string& incarnation) const;
  bool is_connected(const std::string& incarnation) const;
  bool round_is_complete() const;

  // stall_warnings.cpp: calls that some members have entered and others have not
  void look_for_stalls();
  void look_for_missing_commits(Milliseconds limit);
  void warn(const std::string& text);
  void dump(const std::string& reason);
  bool heartbeats_can_show_stalls() const;
  Stalls::Limits stall_limits() const;
  void fail_stalled(const std::string& text);

  // departures.cpp: the end of one worker, or of the job
  void depart(const std::string& incarnation, Departure how, const std::string& what);
  Farewell farewell_of_lost(const std::string& incarnation, const std::string& what) const;
  void evict(const std::string& incarnation, const std::string& why);
  void evict_silent(const std::string& incarnation, const std::string& why);
  void note_silent(const Member& member, const std::string& why);
  void refuse(const std::string& incarnation, const std::string& why);
  void release(const std::string& incarnation);
  bool refuse_unlinkable_joiner(const std::string& from, const Suspect& suspicion);
  void give_up_unlinkable(const std::string& one, const std::string& other,
                          const std::string& reason);
  void forgive_broken_links(const std::vector<BrokenPair>& broken);
  std::string reasons_of_unable() const;
  void end(const std::string& text);
  void stay_over(const LastWord& end);
  void finish(Farewell::Reason reason, const std::string& text);
  void stop_without_boundary();
  void fail(const std::string& text, bool misfit = false);
  void fail_starved(std::size_t members);
  bool end_if_over();
  void expire();
  void forget(const std::string& incarnation);
  void note_departed(const Worker& worker, const char* how);
  static std::string how_it_left(const Worker& worker);
  TimePoint report_due(const std::string& member) const;
  bool has_last_state(const std::string& incarnation) const;

  // early_leavers.cpp
  void note_finished(const std::string& incarnation);
  void look_for_early_leavers(const Heartbeat& heartbeat);

  // status.cpp
  bool is_member(const std::string& incarnation) const;
  std::size_t rank_of(const std::string& incarnation) const;
  std::vector<std::string> remaining_members() const;
  std::size_t count_remaining() const;
  /// Whether it holds for a member that is not gone.
  template <typename Condition>
  bool any_remaining(const Condition& holds) const {
    return std::any_of(by_rank_.begin(), by_rank_.end(),
                       [&](const Worker* worker) { return worker != nullptr && holds(*worker); });
  }
  bool any_member_ready() const;
  bool without_boundaries() const;
  bool any_member_said_bye() const;
  bool starved(std::size_t members) const;
  bool nothing_done() const;
  bool has_made_a_step() const;
  std::string describe(const std::string& incarnation) const;
  StatusReply::Progress progress_of(const Member& member) const;
  void keep_last_progress();
  std::string rank_name(const std::string& incarnation) const;
  TimePoint compute_due();

  // pace.cpp: periods and limits that follow the number of workers
  void set_period(std::size_t workers);
  Milliseconds stretched(Milliseconds limit) const;
  Milliseconds silence_limit() const;
  Milliseconds report_window() const;

  void send(const std::string& incarnation, Message message);
  void send_to_all(std::vector<std::string> incarnations, Message message);
  void log_reason(const std::string& why);

  MembershipOptions options_;  ///< as given, but for initial_np
  Milliseconds period_{};      ///< of heartbeats
  TimePoint now_{};
  TimePoint due_ = TimePoint::max();
  bool joinable_ = false;    ///< see Membership::joinable
  bool is_routine_ = false;  ///< the present event has changed nothing that a rule depends on
  Decision out_;

  View view_;
  std::unordered_map<std::string, std::size_t> ranks_;  ///< of the members of `view_`
  std::optional<Recovery> recovery_;
  std::uint64_t floor_ = 0;  ///< generations up to this one may have been given before
  std::map<std::string, Worker> workers_;
  std::vector<Worker*> by_rank_;             ///< members of `view_` in `workers_`; null: gone
  std::map<std::string, Absence> absences_;  ///< of members in `workers_`
  std::optional<Outage> outage_;
  /// The progress of the members of `view_` when the job ended, by incarnation.
  std::map<std::string, StatusReply::Progress> last_progress_;
  std::map<std::string, Farewell> former_;  ///< former members, with the farewell of each
  Liveness liveness_;
  ActivityProof activity_proof_;  ///< of the members of `view_`
  StepRate step_rate_;
  Stalls stalls_;
  TimePoint next_look_{};  ///< from then on a heartbeat is no routine, and stalls are looked for
  /// A round waits for the step boundary after that many commits.
  struct AwaitedCommit {
    TimePoint since{};
    std::uint64_t commits = 0;
    Duration next_warning{0};
  };
  std::optional<AwaitedCommit> awaited_commit_;
  TimePoint active_ = TimePoint::min();  ///< every member has done something since then
  std::uint64_t arrivals_ = 0;
  std::size_t donors_ = 0;  ///< donors named so far to joiners, for their probes
  std::optional<TimePoint> first_registered_;
  std::optional<std::uint64_t> all_linked_;  ///< of the members' registrations
  std::optional<Layout> layout_;             ///< the job's; unknown until a member calls run
  std::string layout_of_;                    ///< the member that sent it

  std::optional<Round> round_;
  std::uint64_t rounds_ = 0;
  std::uint64_t view_changes_ = 0;
  std::uint64_t commits_ = 0;        ///< the greatest number that a member reported
  std::uint64_t lead_ = 1;           ///< distance of the next proposed commit from `commits_`
  std::vector<std::string> causes_;  ///< of the present view change
  std::set<std::string> gone_by_choice_;
  /// Members of the present view that were given up without proof of their death.
  std::set<std::string> perhaps_alive_;
  TimePoint entered_at_{};  ///< when `view_` became the present view
  /// Broken links of each member since an operation completed; see forgive_broken_links.
  std::map<std::string, int> broken_link_counts_;
  TimePoint first_broken_at_{};     ///< time of the first of these
  std::vector<BrokenPair> broken_;  ///< for the next view
  EarlyLeavers early_leavers_;
  std::string left_early_;  ///< members that left early, for messages about too few workers
  bool recount_ = false;    ///< fewer than min_np members may be left
  /// A link is broken though both ends may live, or a member came back in the middle of a view
  /// change.
  bool round_wanted_ = false;
  bool synced_before_ = false;  ///< some member had the job's state

  std::size_t badly_started_ = 0;  // members that left for the way they were started
  bool stopping_ = false;
  bool launched_ = false;       ///< with `stopping_`: a launcher is connected
  bool restored_stop_ = false;  ///< with `stopping_`: an earlier server was asked
  /// Members that an earlier server was asked to remove, and that are not back yet.
  std::set<std::string> removals_;
  bool ends_workers_ = false;  ///< see Membership::ends_workers
  bool ending_ = false;        ///< a member said that the job is at its end: no joiner is admitted
  std::optional<TimePoint> grace_ends_;
  int handovers_ = 0;  ///< successive views that kept a leaver for its result
  std::optional<TimePoint> handover_until_;
  std::optional<TimePoint> below_since_;
  std::map<std::string, StatusReply::Departed> departed_;  ///< by label
  SilentMembers silent_;
  std::set<std::string> came_;  ///< all incarnations that registered before the job's end
  /// The end of an earlier job, and the last generation of that job.
  std::optional<LastWord> earlier_end_;
  std::uint64_t earlier_generations_ = 0;
  bool misfit_ = false;     ///< see Fail
  bool timed_out_ = false;  ///< see Fail
  bool mismatch_ = false;   ///< see Fail
  bool over_ = false;
  Farewell end_{Farewell::Reason::kDone, "the job is done"};  ///< sent to latecomers
  std::string failure_;                                       ///< why the job cannot go on
};

}  // namespace elastic::rendezvous
