#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/log_limit.hpp"
#include "rendezvous/membership/membership.hpp"
#include "rendezvous/protocol/connection.hpp"
#include "rendezvous/server/event_log.hpp"
#include "rendezvous/server/history_recorder.hpp"
#include "rendezvous/server/journal.hpp"
#include "rendezvous/server/launchers.hpp"
#include "rendezvous/server/quarantine.hpp"

namespace elastic::rendezvous {

/// The job behind the server's connections: feeds what happens to Membership, carries out what it
/// decides in order, and knows which connection is which worker's. Lives on the server's
/// io_context.
///
/// While the journal has not kept a view, because its disk is full or its store has not answered,
/// the job waits before that view: nothing after it is announced, and what happens meanwhile is
/// decided when the view is kept.
class Job : public std::enable_shared_from_this<Job> {
 public:
  using Peer = std::shared_ptr<Connection>;

  /// `memory` is what the journal held when it was opened.
  Job(boost::asio::io_context& io, std::string name, MembershipOptions options,
      QuarantineOptions quarantine, std::unique_ptr<JournalSink> journal, RecoveredState memory,
      EventLog events = {});

  /// A worker registers, on a connection that replaces an earlier one of its. False: it was
  /// refused, and the connection is being closed.
  bool enter(const Register& registration, const Peer& peer);
  void received(const std::string& incarnation, const Message& message);
  /// The worker's connection has ended.
  void lost(const std::string& incarnation, const Peer& peer, const std::string& why);

  StatusReply status() const;
  /// A request on a control connection, of a launcher or of a person. It is answered there once the
  /// journal has kept what the answer promises, in the order of requests.
  void request(const Peer& peer, const Message& request, bool launcher);
  void add_launcher(const Peer& peer);
  /// A launcher gives its name, or its new numbers.
  void enlist(const Peer& peer, const Enlist& launcher);
  void remove_launcher(const Peer& peer);

  /// Launchers are told that this server is not started again.
  void will_not_return() { returns_ = false; }
  /// Called once, a moment after the job is over, with why it failed if it did; also when no worker
  /// is left of a job that had not begun, and, as a failure, when none has come within
  /// `first_worker`.
  void when_over(std::function<void(Status)> over, Milliseconds first_worker);
  /// See Server::lose_starter.
  void lose_starter();

  const std::string& name() const { return name_; }
  /// False: another server may, and this one is to answer no request.
  bool leads() const { return journal_->leads(); }
  /// The number of workers that the job has or waits for.
  std::size_t expected_workers() const { return membership_.expected_workers(); }
  void stop();

 private:
  Decision decide(const Event& event);
  bool is_news(const Event& event, const std::string& reason);
  void carry_out();
  bool perform(const Action& action);
  bool keep(const Status& written);
  bool blocked() const { return waits_since_ || !leads(); }
  bool keep_end(const LastWord& end);
  void go_on();
  void resume();
  Status room_for(const std::string& incarnation);
  void await_room();
  void tell_joinable();
  bool has_ended(const std::string& incarnation) const;
  void watch_for_end(const std::string& incarnation, Duration pause);
  void abandon(const Status& why);
  void arm_tick();
  void note(const std::string& event, const std::string& text, const EventLog::Fields& fields,
            std::optional<double> seconds = {});
  void note_phase(const std::string& reason);
  void note_view();
  void note_recoveries(const std::vector<HistoryRecorder::Recovery>& recoveries);
  void note_heartbeat(const std::string& incarnation, const Heartbeat& heartbeat);
  void watch_end();
  Status how_over() const;
  JobState state() const;
  bool runs() const { return phase_ == Phase::kRunning || phase_ == Phase::kChanging; }
  Message answer(const Peer& peer, const Message& request, bool launcher);
  Done worker_ended(const Peer& peer, const WorkerEnded& its);
  void note_end(const WorkerEnded& its);
  void reply();
  Done add(const AddRequest& request);
  Done remove(const RemoveRequest& request, bool launcher);
  Result<LimitRequest> of_one_launcher(LimitRequest request) const;
  Done limit(LimitRequest request, bool launcher);
  std::vector<PlacedMember> placed_members() const;
  Status may_lose(const std::string& host) const;
  Status may_lose(std::size_t rank) const;
  Done pardon(const PardonRequest& request);
  Done dump(const DumpRequest& request);
  Status place(int count);
  void note_replacement(const std::string& incarnation);
  void forget_limits_before(const std::string& host);
  void carry_out_limits();
  void warn_of_namesake(const Peer& peer, const Enlist& launcher);
  void keep_requests();
  void restore(const std::vector<PendingRequests::Limit>& limits);
  void wait_for_limit(LimitRequest request, std::int64_t replacements, Duration due, Duration ends);
  std::vector<PendingRequests::Limit> limits_to_keep() const;
  std::optional<HostQuarantine> quarantine_of(const std::string& host) const;
  void count_evictions(const Decision& decision);
  void end_silent(const Decision& decision);
  void tell_of_silent(int launcher);
  void carry_out_quarantine();
  void tell(const Quarantine::Change& change);

  struct Request {
    Peer peer;
    Message message;
    bool launcher = false;
  };

  /// A host that is to have fewer workers, once so many have come elsewhere or at `due`.
  struct Limit {
    LimitRequest request;
    std::int64_t replacements = 0;
    TimePoint due;
    TimePoint ends;
    PendingRequests::Limit kept;  ///< in the journal; its times do not change
    std::set<Peer> told = {};     ///< launchers that were told on connections that still stand
    bool told_once = false;
  };

  std::string name_;
  const std::string host_;  ///< the server's own
  Membership membership_;
  std::unique_ptr<JournalSink> journal_;
  std::unordered_map<std::string, Peer> workers_;  ///< by incarnation
  Launchers<Peer> launchers_;
  std::set<std::string> told_hosts_;  ///< names that two launchers have
  EventLog events_;
  HistoryRecorder history_;
  Quarantine quarantine_;
  /// Labels of workers that the server refused for want of its own: their hosts are not to blame.
  std::set<std::string> refused_labels_;
  /// By label: workers that were given up in silence, and whose processes may not have ended yet.
  std::map<std::string, EndWorker> silent_;
  LogLimit logged_evictions_;
  std::uint64_t noted_generation_ = 0;   ///< of the latest view in the event log and the history
  std::deque<Action> actions_;           ///< decided and not carried out
  std::string reason_;                   ///< of these actions
  std::set<std::string> told_removals_;  ///< answers to requests for removals in the log
  std::uint64_t told_generation_ = 0;    ///< of the view that they are for
  std::deque<Event> waiting_;            ///< to be decided when the journal is waited for no more
  std::deque<Request> requests_;         ///< to be answered then, after these
  std::deque<std::pair<Peer, Message>> replies_;  ///< to be sent then, before
  PendingRequests pending_;                       ///< as the journal has them
  std::optional<TimePoint> waits_since_;          ///< for the journal
  bool told_of_wait_ = false;
  std::string no_room_;  ///< in the journal for joiners, and why; empty: there is, or was
  boost::asio::steady_timer room_due_;
  boost::asio::steady_timer tick_;
  std::optional<TimePoint> armed_for_;  ///< when `tick_` is due
  boost::asio::steady_timer end_;
  boost::asio::steady_timer limit_due_;
  boost::asio::steady_timer quarantine_ends_;
  std::vector<Limit> limits_;
  std::set<std::string> replacements_;  ///< workers that have counted for `limits_`
  std::function<void(Status)> over_;
  Milliseconds first_worker_{};  ///< after which `over_` is called where no worker has come
  std::string abandoned_;        ///< why the job cannot go on although Membership would
  Phase phase_ = Phase::kForming;
  bool joinable_ = false;
  std::string phase_text_;
  bool had_workers_ = false;
  bool starter_lost_ = false;
  std::optional<bool> returns_;  ///< see Enlisted
  bool stopped_ = false;
  TimePoint ends_ = TimePoint::max();
};

}  // namespace elastic::rendezvous
