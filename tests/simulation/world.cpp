#include "world.hpp"

#include <algorithm>
#include <utility>

namespace elastic::simulation {

using namespace rendezvous;

namespace {

constexpr Milliseconds kLimit{120000};  // a run that is not over by then hangs

}  // namespace

Scenario::Scenario(std::uint64_t seed_) : seed(seed_) {
  Chance chance(seed * 2 + 1);
  options.initial_np = static_cast<int>(1 + chance.below(5));
  options.min_np = chance.percent(70) ? 1 : static_cast<int>(1 + chance.below(3));
  options.min_np = std::min(options.min_np, options.initial_np);
  options.max_np = chance.percent(50) ? 0 : options.initial_np + static_cast<int>(chance.below(3));
  options.start_timeout = Milliseconds(2000);
  options.below_minimum_timeout = Milliseconds(3000);
  steps = 2 + chance.below(25);
  uses_run = chance.percent(80);
  faults_until = Milliseconds(1 + static_cast<std::int64_t>(chance.below(800)));
  const auto few = [&](unsigned percent, unsigned most) {
    return chance.percent(percent) ? static_cast<unsigned>(chance.below(most + 1)) : 0U;
  };
  kills = few(70, 5);
  pauses = few(30, 2);
  joins = few(60, 4);
  early_leavers = few(30, 2);
  removals = few(20, 2);
  suspicions = few(40, 4);
  stopped = chance.percent(5);
  report_loss_percent = few(20, 10);
}

World::World(const Scenario& scenario)
    : scenario_(scenario),
      chance_(scenario.seed * 2),
      around_{
          time_,
          chance_,
          fabric_,
          scenario.steps,
          scenario.uses_run,
          [this](const std::string& from, Message message) { to_server(from, std::move(message)); },
          [this](const std::string& name) { return workers_.at(name).get(); }},
      membership_(scenario.options) {}

std::string World::run() {
  for (int i = 0; i < scenario_.options.initial_np; ++i) add_worker();
  plan_faults();
  const bool ended = time_.run(time_.now() + kLimit, [this] {
    if (!wrong_.empty()) return true;
    const Phase phase = membership_.phase();
    // With nobody left before there was a view, the job waits for the next workers to come.
    const bool job_over =
        phase == Phase::kDone || phase == Phase::kFailed || phase == Phase::kForming;
    return job_over && std::all_of(workers_.begin(), workers_.end(), [](const auto& entry) {
             return entry.second->over() || entry.second->faulted();
           });
  });
  if (!ended) {
    wrong(std::string("no end: the job is ") + name(membership_.phase()));
    for (const std::string& worker : order_) wrong(workers_.at(worker)->describe());
  }
  if (wrong_.empty()) check_end();
  return wrong_;
}

void World::add_worker() {
  const std::string incarnation = "w" + std::to_string(order_.size());
  order_.push_back(incarnation);
  connections_[incarnation] = {};
  ModelWorker& worker =
      *workers_.emplace(incarnation, std::make_unique<ModelWorker>(incarnation, around_))
           .first->second;
  worker.start();
}

void World::at_random_time(const std::function<void()>& what) {
  time_.after(chance_.between(Milliseconds(0), scenario_.faults_until), what);
}

ModelWorker* World::any_worker() {
  return workers_.at(order_[chance_.below(order_.size())]).get();
}

void World::plan_faults() {
  const auto several = [&](unsigned times, const std::function<void()>& what) {
    for (unsigned i = 0; i < times; ++i) at_random_time(what);
  };
  several(scenario_.joins, [this] { add_worker(); });
  several(scenario_.kills, [this] { kill(*any_worker()); });
  several(scenario_.suspicions, [this] { suspect(*any_worker()); });
  several(scenario_.early_leavers, [this] { any_worker()->leave_early(); });
  several(scenario_.pauses, [this] {
    ModelWorker* worker = any_worker();
    if (worker->over()) return;
    worker->pause();
    time_.after(chance_.between(Milliseconds(10), Milliseconds(3000)),
                [worker] { worker->resume(); });
  });
  several(scenario_.removals, [this] {
    const std::size_t members = membership_.view().members.size();
    if (members == 0) return;
    const std::size_t rank = chance_.below(members);
    removed_[membership_.view().members[rank].incarnation] = 1;
    decide(RemoveWorker{static_cast<int>(rank)});
  });
  if (scenario_.stopped) several(1, [this] { decide(StopJob{}); });
}

void World::kill(ModelWorker& worker) {
  if (!worker.alive()) return;
  worker.kill();
  const std::string name = worker.incarnation();
  // What it had written may still arrive, or be lost with it.
  Connection& connection = connections_.at(name);
  if (!connection.open) return;
  const TimePoint noticed = chance_.percent(50)
                                ? std::max(connection.to_server, time_.now())
                                : time_.now() + chance_.between(Milliseconds(0), Milliseconds(10));
  time_.at(noticed, [this, name] {
    if (!std::exchange(connections_.at(name).open, false)) return;
    decide(ConnectionLost{name, "connection closed"});
  });
  for (const std::string& other : order_) {
    ModelWorker& neighbour = *workers_.at(other);
    if (neighbour.over() || !chance_.percent(30)) continue;
    to_server(other, Suspect{neighbour.generation(), name, "connection reset"});
  }
}

void World::suspect(ModelWorker& worker) {
  if (worker.over()) return;
  to_server(worker.incarnation(),
            Suspect{worker.generation(), any_worker()->incarnation(), "timed out"});
}

void World::to_server(const std::string& from, Message message) {
  // A member that freezes at once may be stuck; how long a step takes is nobody's to judge.
  if (std::holds_alternative<Report>(message) && !workers_.at(from)->at_boundary() &&
      chance_.percent(scenario_.report_loss_percent)) {
    workers_.at(from)->mark_faulted();
    return;
  }
  Connection& connection = connections_.at(from);
  const TimePoint arrives = time_.now() + chance_.between(Milliseconds(0), Milliseconds(4));
  connection.to_server = std::max(connection.to_server, arrives);
  time_.at(connection.to_server, [this, from, message = std::move(message)] {
    if (connections_.at(from).open) deliver(from, message);
  });
}

void World::deliver(const std::string& from, const Message& message) {
  if (const auto* registration = std::get_if<Register>(&message)) {
    decide(Registered{*registration});
  } else {
    decide(Received{from, message});
  }
}

void World::to_worker(const std::string& to, Message message) {
  Connection& connection = connections_.at(to);
  const TimePoint arrives = time_.now() + chance_.between(Milliseconds(0), Milliseconds(4));
  connection.to_worker = std::max(connection.to_worker, arrives);
  time_.at(connection.to_worker,
           [this, to, message = std::move(message)] { workers_.at(to)->receive(message); });
}

void World::decide(const Event& event) {
  const Decision decision = membership_.decide(event, time_.now());
  if (!decision.reason.empty()) {
    const auto since = std::chrono::duration_cast<std::chrono::microseconds>(
        time_.now() - TimePoint(std::chrono::hours(1)));
    log_ += std::to_string(since.count()) + " us: " + decision.reason + "\n";
  }
  for (const Action& action : decision.actions) perform(action);
  schedule_tick();
}

void World::perform(const Action& action) {
  if (const auto* sent = std::get_if<SendTo>(&action)) {
    if (const auto* fail = std::get_if<Fail>(&sent->message)) failure_ = fail->reason;
    if (connections_.at(sent->incarnation).open) to_worker(sent->incarnation, sent->message);
  } else if (const auto* journal = std::get_if<Journal>(&action)) {
    check_view(journal->view);
    view_ = journal->view;
    check_agreement();
  } else {
    const std::string name = std::get<CloseConnection>(action).incarnation;
    connections_.at(name).open = false;
    time_.after(Milliseconds(5), [this, name] { workers_.at(name)->disconnected(); });
  }
}

/// Ticks come a little late, as timers do.
void World::schedule_tick() {
  const TimePoint due = membership_.next_tick();
  if (due == tick_at_ || due == TimePoint::max()) return;
  tick_at_ = due;
  time_.at(due + chance_.between(Milliseconds(0), Milliseconds(1)), [this, due] {
    if (tick_at_ != due) return;
    tick_at_ = TimePoint::max();
    decide(Tick{});
  });
}

}  // namespace elastic::simulation
