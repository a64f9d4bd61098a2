#include "model_lane.hpp"

#include <algorithm>
#include <utility>

#include "data_links.hpp"
#include "model_worker.hpp"
#include "oracle.hpp"

namespace elastic::simulation {

using coordinator::LaneOrders;
using Step = coordinator::Ledger::Step;

namespace {

/// How long a taker waits for its result. A giver that is in the view hands it over at once, so
/// when nothing comes for longer than linking may take, it was lost with a link since.
constexpr Milliseconds kWatchdog{6000};

/// One operation in five of lane 0 is a broadcast.
bool is_broadcast(std::size_t lane, std::uint64_t position) {
  return lane == 0 && position % 5 == 3;
}

/// The result of one in three lies where the caller will have it.
bool is_direct(std::size_t lane, std::uint64_t position) {
  return !is_broadcast(lane, position) && position % 3 == 1;
}

LaneOrders orders_of(const rendezvous::View& view, std::size_t lane, const std::string& self) {
  using Handover = LaneOrders::Handover;
  const rendezvous::LaneDecision& decision = view.lanes[lane];
  LaneOrders orders{view.generation, decision.position, Handover::kNothing, decision.lost};
  if (names(decision.takers, self)) orders.handover = Handover::kTake;
  for (std::size_t i = 0; i < decision.takers.size(); ++i) {
    if (decision.holders[i % decision.holders.size()] == self) orders.handover = Handover::kGive;
  }
  return orders;
}

}  // namespace

ModelLane::ModelLane(Process& process, std::size_t index, Callbacks callbacks)
    : process_(process), index_(index), callbacks_(std::move(callbacks)) {}

void ModelLane::call() {
  called_ = true;
  go_on();
}

void ModelLane::freeze() {
  frozen_ = true;
  if (busy_ == Busy::kNo) return release();
  // Until it has stopped, what is under way may still be completed.
  process_.later(Milliseconds(0), Milliseconds(5), [this, turn = turn_] {
    if (turn != turn_ || busy_ == Busy::kNo) return;
    stop();
  });
}

/// Interrupted. A result that lies in the caller's memory is copied before the call returns.
void ModelLane::stop() {
  ledger_.spoiled();
  if (busy_ == Busy::kSettling) return_from_call();
  release();
}

void ModelLane::return_from_call() {
  called_ = false;
  process_.post([this] { callbacks_.on_done(); });
}

void ModelLane::install(const rendezvous::View& view) {
  ledger_.enter(orders_of(view, index_, process_.incarnation()));
  view_ = view;
  members_ = members_of(view);
  frozen_ = false;
  const auto stale = [&](const Frame& frame) { return frame.generation < view.generation; };
  if (process_.around().scenario.mutation != Mutation::kDropFence) std::erase_if(inbox_, stale);
  go_on();
}

void ModelLane::go_on() {
  if (frozen_ || busy_ != Busy::kNo || ledger_.is_spoiled()) return;
  const Step step = ledger_.next();
  if (step == Step::kHandOver) return begin_hand_over();
  if (!called_) return;
  if (step != Step::kDeliver) return begin_attempt(step == Step::kEndAsLost);
  ledger_.delivered();
  return_from_call();
}

/// All ranks name the same worker, which the program has agreed on when it made the call.
std::string ModelLane::root() const {
  for (const rendezvous::Member& member : view_.members) {
    const ModelLane& other = process_.around().workers[node_of(member.incarnation)]->lane(index_);
    if (other.position() != position() || other.needs().empty()) continue;
    if (contains(members_, node_of(other.needs()))) return other.needs();
  }
  return view_.members[position() % view_.members.size()].incarnation;
}

void ModelLane::begin_attempt(bool lost) {
  busy_ = Busy::kAttempting;
  ++turn_;
  concerned_ = members_ & ~only(process_.self());
  attempted_in_ = view_.generation;
  if (is_broadcast(index_, position()) && needs().empty()) ledger_.begun(root());
  send_to_members({process_.self(), view_.generation, position(), lost, false, {}});
  count_contributions();
}

void ModelLane::send_to_members(const Frame& frame) {
  inbox_.push_back(frame);
  DataLinks& links = process_.around().links;
  for (const rendezvous::Member& member : view_.members) {
    const Node peer = node_of(member.incarnation);
    if (!contains(concerned_, peer)) continue;
    if (!links.up(process_.self(), index_, peer)) return fail(peer);
    ModelWorker& other = *process_.around().workers[peer];
    links.send(process_.self(), index_, peer,
               [&other, index = index_, frame] { other.receive(index, frame); });
  }
}

void ModelLane::count_contributions() {
  const bool fenced = process_.around().scenario.mutation != Mutation::kDropFence;
  Outcome outcome{view_.generation, 0, false};
  Nodes from = 0;
  for (const Frame& frame : inbox_) {
    // From members alone: there are links to nobody else.
    if (frame.result || frame.settled) continue;
    if (frame.position != position() || !contains(members_, frame.from)) continue;
    if (fenced && frame.generation != view_.generation) continue;
    from |= only(frame.from);
    outcome.lost = outcome.lost || frame.lost;
    process_.around().oracle.counts(process_.self(), frame.generation, view_.generation);
  }
  outcome.contributors = from;
  if (std::popcount(from) < std::popcount(members_)) return;
  const std::uint64_t position = ledger_.position();
  complete(outcome);
  if (is_direct(index_, position) && !outcome.lost) return begin_to_settle();
  return_from_call();
  release();
}

/// The result of the operation before `position()` is the caller's once the call returns: so that
/// waits until all members have theirs.
void ModelLane::begin_to_settle() {
  busy_ = Busy::kSettling;
  send_to_members({process_.self(), view_.generation, position() - 1, false, true, {}});
  count_settled();
}

void ModelLane::count_settled() {
  Nodes settled = 0;
  for (const Frame& frame : inbox_) {
    if (!frame.settled || frame.position + 1 != position()) continue;
    if (frame.generation == view_.generation) settled |= only(frame.from) & members_;
  }
  const bool waits = process_.around().scenario.mutation != Mutation::kEarlyRelease;
  if (waits && settled != members_) return;
  let_go_ = position() - 1;
  return_from_call();
  release();
}

void ModelLane::begin_hand_over() {
  busy_ = Busy::kHandingOver;
  ++turn_;
  const rendezvous::LaneDecision& decision = view_.lanes[index_];
  const bool takes = ledger_.orders().handover == LaneOrders::Handover::kTake;
  concerned_ = 0;
  DataLinks& links = process_.around().links;
  for (std::size_t i = 0; i < decision.takers.size(); ++i) {
    const Node taker = node_of(decision.takers[i]);
    const Node giver = node_of(decision.holders[i % decision.holders.size()]);
    if ((takes ? taker : giver) != process_.self()) continue;
    const Node partner = takes ? giver : taker;
    giver_ = giver;
    concerned_ |= only(partner);
    if (!links.up(process_.self(), index_, partner)) return fail(partner);
    if (takes) continue;
    const Outcome* kept = outcome(decision.position - 1);
    if (kept == nullptr || let_go_ == decision.position - 1)
      return process_.around().oracle.wrong(process_.incarnation() + " has no result to give");
    const Frame result{
        process_.self(), view_.generation, decision.position - 1, false, false, *kept};
    ModelWorker& other = *process_.around().workers[partner];
    links.send(process_.self(), index_, partner,
               [&other, index = index_, result] { other.receive(index, result); });
  }
  if (takes) {
    process_.later(kWatchdog, kWatchdog, [this, turn = turn_] {
      if (turn == turn_ && busy_ == Busy::kHandingOver) fail(giver_);
    });
    return look_for_result();
  }
  process_.later(Milliseconds(0), Milliseconds(2), [this, turn = turn_] {
    if (turn != turn_ || busy_ != Busy::kHandingOver) return;
    ledger_.handed_over();
    release();
  });
}

void ModelLane::look_for_result() {
  const auto found = std::find_if(inbox_.begin(), inbox_.end(), [&](const Frame& frame) {
    return frame.result && frame.generation == view_.generation && frame.position == position();
  });
  if (found == inbox_.end()) return;
  const Outcome outcome = *found->result;
  if (outcome.generation != attempted_in_) {
    process_.around().oracle.wrong(process_.incarnation() + " takes a result of generation " +
                                   std::to_string(outcome.generation) + ", but was in it in " +
                                   std::to_string(attempted_in_));
  }
  complete(outcome);
  release();
}

/// By its own attempt, or by the result that it was handed.
void ModelLane::complete(const Outcome& outcome) {
  const std::uint64_t position = ledger_.position();
  if (outcomes_.empty()) first_ = position;
  outcomes_.push_back(outcome);
  const bool taken = busy_ == Busy::kHandingOver;
  taken ? ledger_.handed_over() : ledger_.completed();
  std::erase_if(inbox_, [&](const Frame& frame) { return frame.position + 1 < position; });
  process_.around().oracle.completed(process_.self(), index_, position, outcome, taken);
}

void ModelLane::receive(const Frame& frame) {
  const bool fenced = process_.around().scenario.mutation != Mutation::kDropFence;
  if (fenced && frame.generation < view_.generation) return;
  inbox_.push_back(frame);
  if (busy_ == Busy::kAttempting)
    count_contributions();
  else if (busy_ == Busy::kSettling)
    count_settled();
  else if (busy_ == Busy::kHandingOver && ledger_.orders().handover == LaneOrders::Handover::kTake)
    look_for_result();
}

void ModelLane::link_lost(Node peer) {
  if (busy_ != Busy::kNo && contains(concerned_, peer)) fail(peer);
}

void ModelLane::fail(Node peer) {
  process_.later(Milliseconds(0), Milliseconds(1), [this, peer, turn = turn_] {
    if (turn != turn_ || busy_ == Busy::kNo) return;
    callbacks_.on_suspect(view_.generation, peer);
    stop();
  });
}

/// The lane is nobody's. Also said when that was so already.
void ModelLane::release() {
  busy_ = Busy::kNo;
  if (!frozen_) return go_on();
  process_.post(
      [this, position = position(), its = needs()] { callbacks_.on_quiet(position, its); });
}

const Outcome* ModelLane::outcome(std::uint64_t position) const {
  if (position < first_ || position - first_ >= outcomes_.size()) return nullptr;
  return &outcomes_[position - first_];
}

std::string ModelLane::describe() const {
  std::string text = "at " + std::to_string(position());
  if (called_) text += " called";
  if (frozen_) text += " frozen";
  if (busy_ == Busy::kAttempting) text += " attempting";
  if (busy_ == Busy::kSettling) text += " settling";
  if (busy_ == Busy::kHandingOver) text += " handing over";
  if (ledger_.is_spoiled()) text += " spoiled";
  return text;
}

}  // namespace elastic::simulation
