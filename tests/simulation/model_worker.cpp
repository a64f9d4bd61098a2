#include "model_worker.hpp"

#include <algorithm>
#include <utility>

namespace elastic::simulation {

using rendezvous::LaneDecision;

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_member(const rendezvous::View& view, const std::string& name) {
  return std::any_of(view.members.begin(), view.members.end(),
                     [&](const auto& member) { return member.incarnation == name; });
}

/// One operation in five of lane 0 is a broadcast.
bool is_broadcast(std::size_t lane, std::uint64_t position) {
  return lane == 0 && position % 5 == 3;
}

}  // namespace

ModelWorker::ModelWorker(std::string incarnation, Surroundings& around)
    : incarnation_(std::move(incarnation)), around_(around) {}

void ModelWorker::start() {
  rendezvous::Register registration;
  registration.incarnation = incarnation_;
  say(registration);
  beat();
}

void ModelWorker::say(rendezvous::Message message) {
  around_.send(incarnation_, std::move(message));
}

void ModelWorker::later(Milliseconds least, Milliseconds most, std::function<void()> what) {
  around_.time.after(around_.chance.between(least, most), [this, what = std::move(what)] {
    if (over()) return;
    if (paused_) {
      missed_.push_back(what);
    } else {
      what();
    }
  });
}

void ModelWorker::beat() {
  later(Milliseconds(50), Milliseconds(52), [this] {
    say(rendezvous::Heartbeat{});
    beat();
  });
}

void ModelWorker::kill() {
  alive_ = false;
  faulted_ = true;
}

void ModelWorker::disconnected() {
  over_ = true;
}

void ModelWorker::pause() {
  paused_ = true;
  faulted_ = true;
}

void ModelWorker::resume() {
  paused_ = false;
  for (auto& what : std::exchange(missed_, {})) {
    if (!over()) what();
  }
  go_on();
}

void ModelWorker::leave_early() {
  leave_early_ = true;
}

void ModelWorker::receive(const rendezvous::Message& message) {
  if (over()) return;
  if (paused_) {
    missed_.push_back([this, message] { receive(message); });
    return;
  }
  if (const auto* welcome = std::get_if<rendezvous::Welcome>(&message)) {
    if (!welcome->joining || !around_.uses_run) return;
    later(Milliseconds(1), Milliseconds(50), [this] { say(rendezvous::Ready{}); });
  } else if (const auto* freeze = std::get_if<rendezvous::Freeze>(&message)) {
    on_freeze(*freeze);
  } else if (const auto* announce = std::get_if<rendezvous::Announce>(&message)) {
    on_announce(announce->view);
  } else {
    over_ = true;  // Farewell, Fail or Refuse
  }
}

void ModelWorker::on_freeze(const rendezvous::Freeze& freeze) {
  if (freeze.generation != view_.generation) return;
  if (freeze.at_commit != 0) {
    freezing_ = 0;
    const bool accepted = commits_ < freeze.at_commit;
    stop_at_ = accepted ? freeze.at_commit : 0;
    stop_round_ = freeze.round;
    stopped_ = false;
    say(rendezvous::Promise{freeze.round, accepted, commits_});
    return go_on();
  }
  stop_at_ = 0;
  freezing_ = freeze.round;
  // Operations may complete until the lanes are quiet, and not after the report.
  later(Milliseconds(0), Milliseconds(5), [this, round = freeze.round] {
    if (freezing_ != round) return;
    frozen_ = true;
    report(round);
  });
}

void ModelWorker::report(std::uint64_t round) {
  rendezvous::Report report{view_.generation, round, {}, commits_, synced_};
  for (const Lane& lane : lanes_) report.lanes.push_back({lane.position, lane.needs});
  say(report);
}

void ModelWorker::on_announce(const rendezvous::View& view) {
  const bool joins = !member();
  view_ = view;
  freezing_ = 0;
  stop_at_ = 0;
  frozen_ = false;
  stopped_ = false;
  installed_ = false;
  if (joins) commits_ = view.commits;
  for (std::size_t i = 0; i < kLanes; ++i) {
    Lane& lane = lanes_[i];
    if (joins) lane.position = view.lanes[i].position;
    lane.entered = false;
    lane.taking = contains(view.lanes[i].takers, incarnation_);
  }
  later(Milliseconds(0), Milliseconds(10), [this, joins, generation = view.generation] {
    if (generation != view_.generation) return;
    if (joins && around_.uses_run) say(rendezvous::Ready{});
    install();
  });
}

void ModelWorker::install() {
  installed_ = true;
  if (stopped_) report(stop_round_);
  go_on();
  for (const auto& member : view_.members) {
    ModelWorker* other = around_.peer(member.incarnation);
    if (!other->over() && !other->paused_) other->go_on();  // may take a result from this one now
  }
}

void ModelWorker::go_on() {
  if (stopped_ || !member()) return;
  for (std::size_t lane = 0; lane < kLanes && running(); ++lane) go_on_in(lane);
  maybe_commit();
}

void ModelWorker::go_on_in(std::size_t index) {
  Lane& lane = lanes_[index];
  if (lane.taking) return take(index);
  const bool called = lane.in_flight || (!said_bye_ && !computing_ &&
                                         lane.position < (commits_ + 1) * kOperationsPerStep &&
                                         commits_ < around_.steps);
  if (called && !lane.entered) enter(index);
}

/// A holder that has installed the same view can hand the result over.
void ModelWorker::take(std::size_t index) {
  const LaneDecision& decision = view_.lanes[index];
  for (const std::string& name : decision.holders) {
    const ModelWorker* holder = around_.peer(name);
    if (!holder->alive_ || holder->generation() != generation() || !holder->installed_) continue;
    later(Milliseconds(0), Milliseconds(10), [this, index, name, generation = generation()] {
      Lane& lane = lanes_[index];
      if (!running() || generation != view_.generation || !lane.taking) return;
      complete(index, around_.peer(name)->outcomes(index).at(lane.position));
    });
    return;
  }
}

void ModelWorker::enter(std::size_t index) {
  Lane& lane = lanes_[index];
  lane.entered = true;
  if (is_broadcast(index, lane.position) && !lane.in_flight) {
    // All name the same root: the one of somebody who has called it already, if that is here.
    lane.needs = view_.members[lane.position % view_.members.size()].incarnation;
    for (const auto& member : view_.members) {
      const ModelWorker* other = around_.peer(member.incarnation);
      if (other->position(index) != lane.position || other->needs(index).empty()) continue;
      if (has_member(view_, other->needs(index))) lane.needs = other->needs(index);
    }
  }
  lane.in_flight = true;
  if (!around_.fabric.enter(view_, index, lane.position, incarnation_)) return;
  const Outcome outcome{view_.generation,
                        view_.lanes[index].lost && view_.lanes[index].position == lane.position};
  for (const auto& member : view_.members) {
    ModelWorker* other = around_.peer(member.incarnation);
    other->later(Milliseconds(0), Milliseconds(8),
                 [other, index, outcome, position = lane.position] {
                   const Lane& its = other->lanes_[index];
                   if (!other->running() || other->generation() != outcome.generation) return;
                   if (its.entered && its.position == position) other->complete(index, outcome);
                 });
  }
}

void ModelWorker::complete(std::size_t index, Outcome outcome) {
  Lane& lane = lanes_[index];
  lane.outcomes[lane.position] = outcome;
  ++lane.position;
  lane.entered = false;
  lane.in_flight = false;
  lane.taking = false;
  lane.needs.clear();
  synced_ = true;
  computing_ = true;
  later(Milliseconds(0), Milliseconds(4), [this] {
    computing_ = false;
    go_on();
  });
  go_on();
}

void ModelWorker::maybe_commit() {
  if (over() || paused_ || said_bye_ || computing_ || stopped_) return;
  const std::uint64_t end = (commits_ + 1) * kOperationsPerStep;
  const bool finished = commits_ < around_.steps &&
                        std::all_of(lanes_.begin(), lanes_.end(),
                                    [&](const Lane& lane) { return lane.position >= end; });
  if (finished) {
    ++commits_;
    if (stop_at_ != 0 && commits_ >= stop_at_) {
      stopped_ = true;
      stop_at_ = 0;
      // A view that is being installed does not keep the trainer from its boundary.
      if (installed_) report(stop_round_);
      return;
    }
  }
  if (commits_ >= around_.steps) return bye(true);
  if (!finished) return;
  if (leave_early_) return bye(false);
  go_on();
}

void ModelWorker::bye(bool done) {
  said_bye_ = true;
  say(rendezvous::Bye{done});
}

std::string ModelWorker::describe() const {
  std::string text = incarnation_ + ": generation " + std::to_string(view_.generation) +
                     ", commits " + std::to_string(commits_) + " of " +
                     std::to_string(around_.steps);
  for (const Lane& lane : lanes_) {
    text += ", at " + std::to_string(lane.position) + (lane.entered ? " entered" : "") +
            (lane.in_flight ? " in flight" : "") + (lane.taking ? " taking" : "");
  }
  const auto flag = [&](bool set, const char* name) {
    text += set ? std::string(", ") + name : "";
  };
  flag(!alive_, "dead");
  flag(paused_, "paused");
  flag(over_, "over");
  flag(said_bye_, "said bye");
  flag(!installed_, "installing");
  flag(frozen_, "frozen");
  flag(computing_, "computing");
  flag(stopped_, "stopped");
  return text;
}

}  // namespace elastic::simulation
