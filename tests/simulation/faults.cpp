// The faults of a run, and the losses that each of them permits the job.

#include "world.hpp"

namespace elastic::simulation {

using namespace rendezvous;

namespace {

constexpr Milliseconds kLeastTrouble{10};
constexpr Milliseconds kMostTrouble{3000};
constexpr std::chrono::hours kForGood{1};

}  // namespace

void World::happen(Fault fault) {
  switch (fault) {
    case Fault::kKill:
      return kill();
    case Fault::kPause:
      return pause();
    case Fault::kJoin:
      return join();
    case Fault::kLeave:
      return leave();
    case Fault::kRemoval:
      return remove();
    case Fault::kStop:
      return stop();
    case Fault::kSuspicion:
      return suspect();
    case Fault::kLinkCut:
      return cut_link();
    case Fault::kPartition:
      return partition();
    case Fault::kServerCrash:
    case Fault::kLostAppend:
    case Fault::kTornAppend:
    case Fault::kUnacknowledged:
    case Fault::kLostJournal:
      return crash_server(fault);
    case Fault::kTwoAtOnce:
      return two_at_once();
    case Fault::kDamage:
      return damage();
    case Fault::kReset:
      return reset();
    case Fault::kRackLost:
      return lose_rack();
    case Fault::kRackCut:
      return cut_racks();
    case Fault::kParted:
      return part_for_good();
  }
}

void World::kill() {
  ModelWorker& worker = any_worker();
  if (worker.over()) return;
  tally_.count(Fault::kKill);
  worker.kill();
}

void World::pause() {
  ModelWorker& worker = any_worker();
  if (!worker.answers()) return;
  tally_.count(Fault::kPause);
  const Duration length = chance_.between(kLeastTrouble, kMostTrouble);
  oracle_.excuse(only(worker.process().self()), length);
  worker.pause(length);
}

void World::join() {
  tally_.count(Fault::kJoin);
  add_worker();
}

void World::leave() {
  tally_.count(Fault::kLeave);
  any_worker().leave_early();
}

void World::remove() {
  const Membership* membership = server_.membership();
  if (membership == nullptr || membership->view().members.empty()) return;
  tally_.count(Fault::kRemoval);
  const std::size_t rank = chance_.below(membership->view().members.size());
  oracle_.removal_asked(node_of(membership->view().members[rank].incarnation));
  server_.decide(RemoveWorker{static_cast<int>(rank)});
}

void World::stop() {
  tally_.count(Fault::kStop);
  oracle_.job_stopped();
  server_.decide(StopJob{});
}

void World::suspect() {
  ModelWorker& one = any_worker();
  ModelWorker& other = any_worker();
  tally_.count(Fault::kSuspicion);
  oracle_.suspected(one.process().self(), other.process().self());
  one.suspect(other.process().self());
}

void World::cut_link() {
  const Node one = any_worker().process().self();
  const Node other = any_worker().process().self();
  if (one == other) return;
  tally_.count(Fault::kLinkCut);
  const Duration length = chance_.between(kLeastTrouble, kMostTrouble);
  const bool both_ways = chance_.percent(60);
  note("nothing gets from " + incarnation_of(one) + " to " + incarnation_of(other) +
       (both_ways ? " or back" : ""));
  oracle_.excuse(only(one) | only(other), length);
  network_.cut(only(one), only(other), length);
  if (both_ways) network_.cut(only(other), only(one), length);
}

/// Some workers on one side, the server with the others on the other.
void World::partition() {
  Nodes isolated;
  for (Node node = 0; node < workers_.size(); ++node) {
    if (chance_.percent(40)) isolated |= only(node);
  }
  if (isolated.none()) return;
  tally_.count(Fault::kPartition);
  const Duration length = chance_.between(kLeastTrouble, kMostTrouble);
  const std::uint64_t ways = chance_.below(4);  // mostly both
  note("a partition, " +
       std::string(ways == 0   ? "from"
                   : ways == 1 ? "to"
                               : "from and to") +
       " some workers");
  // If one direction works, the server may give up either of two workers that cannot be linked.
  oracle_.excuse(isolated, length);
  if (ways != 1) network_.cut(isolated, ~isolated, length);
  if (ways != 0) network_.cut(~isolated, isolated, length);
}

void World::crash_server(Fault how) {
  if (job_is_over()) return;
  switch (how) {
    case Fault::kLostAppend:
      return server_.crash_in_append(Disk::Remains::kNothing);
    case Fault::kTornAppend:
      return server_.crash_in_append(Disk::Remains::kTorn);
    case Fault::kUnacknowledged:
      return server_.crash_in_append(Disk::Remains::kAll);
    case Fault::kLostJournal:
      server_.lose_journal();
      break;
    default:
      break;
  }
  // The crash is in the middle of a decision, or now.
  if (chance_.percent(60)) return server_.crash_after(static_cast<unsigned>(chance_.below(8)));
  tally_.count(Fault::kServerCrash);
  server_.crash();
}

void World::two_at_once() {
  tally_.count(Fault::kTwoAtOnce);
  for (int i = 0; i < 2; ++i) {
    happen(static_cast<Fault>(chance_.below(static_cast<std::size_t>(Fault::kTwoAtOnce))));
  }
}

/// Damages the next message between a worker and the server. No worker may be given up for that.
void World::damage() {
  ModelWorker& worker = any_worker();
  if (!worker.answers()) return;
  tally_.count(Fault::kDamage);
  if (chance_.percent(50)) {
    note(worker.incarnation() + " is told something that comes damaged");
    worker.mishear();
  } else {
    note("the server is told something by " + worker.incarnation() + " that comes damaged");
    server_.mishear(worker.incarnation());
  }
}

/// Resets connections of workers to the server. No worker may be given up for that, either.
void World::reset() {
  tally_.count(Fault::kReset);
  const std::uint64_t percent = 100 / (1 + chance_.below(4));
  for (const auto& worker : workers_) {
    if (chance_.percent(static_cast<unsigned>(percent))) server_.reset(worker->incarnation());
  }
}

Nodes World::some_rack() {
  const Node rack = scenario_.host_of(any_worker().process().self());
  Nodes found;
  for (Node node = 0; node < workers_.size(); ++node) {
    if (scenario_.host_of(node) == rack) found |= only(node);
  }
  return found;
}

void World::lose_rack() {
  const Nodes rack = some_rack();
  tally_.count(Fault::kRackLost);
  for (const auto& worker : workers_) {
    if (contains(rack, worker->process().self())) worker->kill();
  }
}

/// A partial partition: the server, and all other workers, are reached by both.
void World::cut_racks() {
  const Nodes one = some_rack();
  const Nodes other = some_rack();
  if (one == other) return;
  tally_.count(Fault::kRackCut);
  const Duration length = chance_.between(kLeastTrouble, kMostTrouble);
  note("two racks do not reach each other");
  oracle_.excuse(one | other, length);
  network_.cut(one, other, length);
  network_.cut(other, one, length);
}

/// Longer than a run lasts.
void World::part_for_good() {
  const Node one = any_worker().process().self();
  const Node other = any_worker().process().self();
  if (one == other) return;
  tally_.count(Fault::kParted);
  note(incarnation_of(one) + " and " + incarnation_of(other) + " never reach each other again");
  oracle_.parted(one, other);
  network_.cut(only(one), only(other), kForGood);
  network_.cut(only(other), only(one), kForGood);
}

bool World::job_is_over() const {
  const Membership* membership = server_.membership();
  return membership != nullptr &&
         (membership->phase() == Phase::kDone || membership->phase() == Phase::kFailed);
}

}  // namespace elastic::simulation
