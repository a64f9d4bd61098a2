#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nodes.hpp"
#include "outcome.hpp"
#include "rendezvous/membership/membership.hpp"
#include "rendezvous/server/journal_record.hpp"
#include "runtime/roster.hpp"
#include "scenario.hpp"
#include "tally.hpp"
#include "virtual_time.hpp"

namespace elastic::simulation {

class ModelWorker;

/// Knows what all workers and the server have done, which none of them does, and says what of it
/// must not be.
class Oracle {
 public:
  using Workers = std::vector<std::unique_ptr<ModelWorker>>;

  Oracle(const Scenario& scenario, const VirtualTime& time, const Workers& workers, Tally& tally)
      : scenario_(scenario), time_(time), workers_(workers), tally_(tally) {}

  void wrong(const std::string& what) { wrong_ += what + "\n"; }
  const std::string& wrong() const { return wrong_; }

  // The server.
  /// It is to write `next` down.
  void decided(const rendezvous::View& next);
  void server_starts(const rendezvous::JournalContents& journal);
  void journal_lost();
  enum class End : std::uint8_t { kDone, kStopped, kFailed };
  /// It has decided that the job ends, with `last` as its view.
  void job_ends(End how, const rendezvous::View& last, const std::string& reason);

  // Workers.
  void installed(Node worker, std::uint64_t before, const rendezvous::View& view);
  /// An unnamed call, which was operation `position`, has returned to the program.
  void returned(Node worker, std::uint64_t position, const std::string& what,
                const Outcome& outcome);
  void returned_named(Node worker, const std::string& name, const Outcome& outcome);
  /// A call of a group (group_rules.hpp). `which` is the same on its members; `roster` is that to
  /// which the worker has applied the rules.
  void returned_in_group(Node worker, std::size_t group, const std::string& which,
                         const runtime::Roster& roster, const Outcome& outcome);
  /// The data of a result has the contributions of `counted`, the call says `contributors`; `wrong`
  /// is what else is the matter with the data.
  void check_data(Node worker, const std::string& what, Nodes counted, Nodes contributors,
                  const std::string& wrong);
  /// The program has done so many steps, and that is a hash of all results.
  void committed(Node worker, std::uint64_t commits, std::uint64_t hash);

  // Faults: what is allowed because of them.
  /// The job may lose the workers from now on.
  void excuse(Nodes workers) { excused_ |= workers; }
  /// The job may lose the workers because of a trouble that lasts so long.
  void excuse(Nodes workers, Duration trouble);
  /// The two never reach each other again.
  void parted(Node one, Node other) {
    parted_ |= only(one) | only(other);
    excuse(parted_);
  }
  /// One of the two suspects the other. After several suspicions a worker may be given up.
  void suspected(Node one, Node other);
  void removal_asked(Node worker) { removed_ |= only(worker); }
  void job_stopped() { stopped_ = true; }

  /// The run is being shut down: ends from now on are not checked, since the workers that they
  /// would be compared with may have ended.
  void close() { closed_ = true; }

 private:
  struct Decided {
    rendezvous::View view;
    unsigned job = 0;
  };

  /// Null if the server has never decided this view.
  const Decided* known(const rendezvous::View& view) const;
  void forget_results();
  void check_departures(const rendezvous::View& next);
  void check_lane(const rendezvous::View& next, std::size_t lane);
  void check_joiners(const rendezvous::View& next);
  void check_outcome(const std::string& which, const Outcome& outcome);
  /// Whether `is_it` holds of a view of this generation that was decided.
  template <typename IsIt>
  bool any_view(std::uint64_t generation, const IsIt& is_it) const {
    for (const auto* const views : {&decided_, &forgotten_}) {
      const auto [begin, end] = views->equal_range(generation);
      const auto holds = [&](const auto& each) { return is_it(each.second.view); };
      if (std::any_of(begin, end, holds)) return true;
    }
    return false;
  }
  /// Members that returned from the same call have the same of it.
  template <typename Key, typename Value>
  void check_agreement(std::map<Key, std::map<Node, Value>>& all, Node worker, const Key& key,
                       const Value& value, const std::string& what);
  void check_distance(Node worker, std::size_t lane);
  void check_failure(const std::string& reason);
  void check_success(const std::string& reason);
  void allow(EarlyEnd why);
  bool excused(Node worker) const;
  bool may_be_lost(Node worker) const;

  const Scenario& scenario_;
  const VirtualTime& time_;
  const Workers& workers_;
  Tally& tally_;
  std::multimap<std::uint64_t, Decided> decided_;    // by generation
  std::multimap<std::uint64_t, Decided> forgotten_;  // of jobs that no worker knew
  unsigned jobs_ = 0;                                // that began, one after another
  std::array<unsigned, kMostWorkers> job_of_{};      // of the workers
  rendezvous::View current_;  // the one that counts: decided last, or taken up again
  unsigned current_job_ = 0;  // that it belongs to: a forgotten one may be taken up again
  std::map<std::uint64_t, std::map<Node, Outcome>> unnamed_;  // by position
  std::map<std::string, std::map<Node, Outcome>> named_;
  std::map<std::uint64_t, std::map<Node, std::uint64_t>> committed_;
  std::array<unsigned, kMostWorkers> strikes_{};
  Nodes excused_;  // permanently
  std::array<TimePoint, kMostWorkers> excused_until_{};
  Nodes parted_;
  Nodes removed_;
  bool stopped_ = false;
  unsigned journals_lost_ = 0;
  bool knows_no_view_ = false;  // the server came back without its journal, and has none yet
  Nodes newest_;                // alone in a view when its journal was lost
  bool closed_ = false;
  std::string wrong_;
};

}  // namespace elastic::simulation
