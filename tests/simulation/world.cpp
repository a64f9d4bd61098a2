#include "world.hpp"

#include <algorithm>

namespace elastic::simulation {

namespace {

// A run that is not over by then hangs.
constexpr Milliseconds kLimit{180000};
constexpr std::uint64_t kMostEventsOfWorker = 200'000;

}  // namespace

World::World(const Scenario& scenario, bool traced)
    : scenario_(scenario),
      chance_(scenario.seed * 2),
      trace_(time_, traced),
      network_(time_, chance_, scenario.delay),
      threads_(time_, chance_),
      oracle_(scenario_, time_, workers_, tally_),
      context_{scenario_,
               time_,
               chance_,
               network_,
               trace_,
               oracle_,
               tally_,
               threads_,
               server_,
               workers_,
               [this](Node worker) { rejoin(worker); }},
      server_(context_) {
  // Workers keep references to each other.
  workers_.reserve(kMostWorkers);
}

std::string World::run() {
  threads_.set_active(true);
  ++tally_.runs;
  if (scenario_.options.initial_np > 64) ++tally_.large_runs;
  server_.start();
  start_workers();
  plan_faults();
  const bool ended = time_.run(time_.now() + kLimit, most_events(),
                               [this] { return !oracle_.wrong().empty() || is_over(); });
  if (!ended) {
    const rendezvous::Membership* membership = server_.membership();
    oracle_.wrong(std::string("no end: the job is ") + (membership != nullptr
                                                            ? rendezvous::name(membership->phase())
                                                            : "without server"));
    for (const auto& worker : workers_) oracle_.wrong(worker->describe());
  }
  dismantle();
  threads_.set_active(false);
  return oracle_.wrong();
}

/// All at once, or within a moment: the first one at once, so that there is one for a fault.
void World::start_workers() {
  for (int i = 0; i < scenario_.options.initial_np; ++i) {
    if (i == 0 || scenario_.starts_within == Milliseconds(0)) {
      add_worker();
      continue;
    }
    ++to_come_;
    time_.after(chance_.between(Milliseconds(0), scenario_.starts_within), [this] {
      --to_come_;
      add_worker();
    });
  }
}

std::uint64_t World::most_events() const {
  return kMostEventsOfWorker *
         std::max<std::uint64_t>(static_cast<std::uint64_t>(scenario_.options.initial_np), 5);
}

/// Workers end as in a shutdown, from wherever they are: all their threads must.
void World::dismantle() {
  oracle_.close();
  for (const auto& worker : workers_) worker->dismantle();
  if (time_.run(time_.now() + kLimit, most_events(), [this] { return threads_.all_ended(); }))
    return;
  for (const auto& worker : workers_) {
    if (worker->all_threads_ended()) continue;
    oracle_.wrong("threads of " + worker->incarnation() +
                  " do not end: " + threads_.describe(worker->process()));
  }
  // Their threads still refer to the workers, so these must not be destroyed.
  for (auto& worker : workers_) (void)worker.release();
}

bool World::is_over() const {
  return to_come_ == 0 && std::all_of(workers_.begin(), workers_.end(),
                                      [](const auto& worker) { return worker->over(); });
}

void World::add_worker() {
  if (workers_.size() == scenario_.most_workers) return;
  workers_.push_back(std::make_unique<ModelWorker>(static_cast<Node>(workers_.size()), context_));
  workers_.back()->start();
}

/// Starts the worker again, as elastic::run does after an eviction.
void World::rejoin(Node worker) {
  ++to_come_;
  time_.after(chance_.between(Milliseconds(1), Milliseconds(20)), [this, worker] {
    --to_come_;
    note(incarnation_of(worker) + " joins again as " +
         incarnation_of(static_cast<Node>(workers_.size())));
    ++tally_.rejoins;
    add_worker();
  });
}

void World::plan_faults() {
  for (std::size_t i = 0; i < kFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    for (unsigned times = scenario_.times(fault); times > 0; --times) at_random_time(fault);
  }
}

void World::at_random_time(Fault fault) {
  ++to_come_;
  time_.after(chance_.between(Milliseconds(0), scenario_.faults_until), [this, fault] {
    --to_come_;
    happen(fault);
  });
}

void World::note(const std::string& what) {
  trace_.line("world", [&] { return what; });
}

}  // namespace elastic::simulation
