#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "collectives/model/capacities.hpp"
#include "collectives/model/fabric.hpp"
#include "collectives/model/fair_share.hpp"
#include "collectives/model/symmetry.hpp"
#include "collectives/plan/schedule.hpp"

namespace elastic::model {

/// Walks the plans of all ranks in simulated time, as a discrete-event simulation.
///
/// - A step starts when the steps before it are complete, as in the native backend's executor.
/// - The messages of a link leave one after another. A message occupies what the fabric says for as
///   long as its fair share takes; then it has been sent. A latency later it has arrived, and its
///   receive is complete if that could start.
/// - A rank begins its next plan when all steps of the one before are complete.
class PlanWalk {
 public:
  /// A rank runs all `plans` in each call.
  PlanWalk(const Network& network, const plan::Hosts& hosts, int flows,
           const std::vector<PlanOf>& plans);
  /// The same with a symmetry of the plans, or with none.
  PlanWalk(const Network& network, const plan::Hosts& hosts, int flows,
           const std::vector<PlanOf>& plans, const Symmetry& symmetry);

  /// The moment at which the ranks complete each of `calls` calls, as a mean over the ranks. All
  /// begin the first one at 0.
  std::vector<double> run(int calls);
  /// How much of the time the busiest resource of a kind was in use, in the last run.
  double busy(Fabric::Kind kind) const;
  const Symmetry& symmetry() const { return symmetry_; }

 private:
  using Queue = plan::Schedule::Queue;
  struct Message {
    std::size_t rank;  // that sends it; an index into ranks_
    std::int32_t step;
    std::size_t bytes;
    bool reduces;
  };
  /// From one walked rank to another, which may stand for one on another host.
  struct Channel {
    static constexpr std::size_t kNone = ~std::size_t{0};
    int from_rank;
    int to_rank;  // the walked one
    bool inside_host;
    std::size_t to;                     // index into ranks_
    std::vector<std::size_t> to_queue;  // by plan: the receiver's queue, or kNone
    std::deque<Message> posted{};
    bool is_sending = false;
    std::size_t arrived = 0;  // and not received
  };
  struct QueueProgress {
    std::size_t out = 0;  // channels
    std::size_t in = 0;
    std::size_t posted = 0;
    std::size_t received = 0;
  };
  struct Rank {
    std::size_t plan = 0;  // of the call
    int call = 0;
    std::size_t left = 0;
    std::vector<std::uint8_t> waits;
    std::vector<QueueProgress> queues;
  };
  /// What an activity is for.
  struct Doing {
    static constexpr std::size_t kLocal = ~std::size_t{0};
    std::size_t channel = kLocal;
    std::size_t rank = 0;
    std::int32_t step = 0;
  };
  using Arrival = std::pair<double, std::size_t>;  // time, channel

  void make_channels();
  const plan::Schedule& schedule(const Rank& rank, std::size_t index) const {
    return schedules_[rank.plan][index];
  }
  void begin_plan(std::size_t index);
  void end_plan(std::size_t index);
  void complete(std::size_t index, std::int32_t step);
  void settle();
  void release(std::size_t index, std::int32_t step);
  void post_sends(std::size_t index, std::size_t queue);
  void receive(std::size_t index, std::size_t queue);
  void send_next(std::size_t channel);
  void perform(std::size_t index, std::int32_t step);
  void start(const Activity& activity, const Doing& doing);
  double until_next_event() const;
  void advance(double seconds);
  void end_activities();
  void take_arrivals();

  plan::Hosts hosts_;
  Symmetry symmetry_;
  Fabric fabric_;
  std::vector<std::vector<plan::Schedule>> schedules_;  // by plan, then index into ranks_
  std::vector<std::vector<std::vector<QueueProgress>>> first_progress_;  // the same, by queue
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;

  // State of a run.
  int calls_ = 0;
  double now_ = 0;
  std::vector<Activity> activities_;
  std::vector<Doing> doing_;  // of the activity with the same index
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::vector<std::pair<std::size_t, std::int32_t>> completed_;  // steps whose dependents wait
  std::optional<Capacities> capacities_;
  std::vector<double> used_;  // of each resource, times seconds
  std::vector<double> ends_;  // by call: sum over the ranks
  bool shares_changed_ = false;
  FairShare fair_share_;
};

}  // namespace elastic::model
