#include "model_server.hpp"

#include <algorithm>
#include <utility>

#include "model_worker.hpp"
#include "oracle.hpp"
#include "rendezvous/protocol/codec.hpp"

namespace elastic::simulation {

using namespace rendezvous;

namespace {

bool welcomes(const Decision& decision, const std::string& incarnation) {
  return std::any_of(decision.actions.begin(), decision.actions.end(), [&](const Action& action) {
    const auto* sent = std::get_if<SendTo>(&action);
    return sent != nullptr && std::holds_alternative<Welcome>(sent->message) &&
           std::ranges::find(sent->incarnations, incarnation) != sent->incarnations.end();
  });
}

/// The most messages to one worker for one event, as documented in docs/simulation.md.
constexpr unsigned kMostMessages = 4;
constexpr Milliseconds kLeastAbsence{10};
constexpr Milliseconds kMostAbsence{1500};

}  // namespace

void ModelServer::note(const std::string& what) const {
  context_.trace.line("server", [&] { return what; });
}

void ModelServer::start() {
  const JournalContents contents = disk_.open();
  RecoveredState memory{contents.view, contents.begun ? contents.floor + 1 : 0, contents.end, false,
                        contents.requests};
  if (context_.scenario.mutation == Mutation::kForgottenFloor && contents.view) {
    memory.floor = contents.view->generation;
  }
  if (contents.begun) {
    note("comes back; the journal has " +
         (contents.view ? "view " + std::to_string(contents.view->generation) : "no view") +
         ", floor " + std::to_string(contents.floor) + (contents.torn ? ", and is torn" : ""));
  }
  over_ = false;
  context_.oracle.server_starts(contents);
  membership_.emplace(context_.scenario.options, memory);
  if (memory.floor > 0) write(JournalFloor{memory.floor});
}

void ModelServer::crash() {
  if (!is_up()) return;
  note("dies");
  membership_.reset();
  actions_to_crash_.reset();
  remains_.reset();
  round_ = 0;
  tick_at_ = TimePoint::max();
  const bool unsent_is_lost = context_.chance.percent(50);
  for (Connection* connection : std::exchange(accepted_, {})) {
    unsent_is_lost ? connection->abort(kServer) : connection->close(kServer);
  }
  workers_.clear();
  registered_.clear();
  context_.time.after(context_.chance.between(kLeastAbsence, kMostAbsence),
                      [this] { come_back(); });
}

void ModelServer::come_back() {
  if (std::exchange(journal_is_lost_, false)) {
    note("its journal is gone");
    context_.tally.count(Fault::kLostJournal);
    disk_.lose();
    context_.oracle.journal_lost();
  }
  ++context_.tally.restarts;
  start();
}

Connection& ModelServer::accept(Node worker, std::function<void(Connection&)> on_lost_by_worker) {
  accepted_.push_back(&context_.network.connect(
      worker, kServer,
      [this, lost_by_worker = std::move(on_lost_by_worker)](Connection& which, Node who) {
        who == kServer ? lost(which) : lost_by_worker(which);
      }));
  return *accepted_.back();
}

void ModelServer::receive(Connection& connection, const Message& message) {
  if (const auto* registration = std::get_if<Register>(&message)) {
    return enter(connection, *registration);
  }
  const auto found = registered_.find(&connection);
  if (found == registered_.end()) return;
  const std::string from = found->second;
  const auto* report = std::get_if<Report>(&message);
  if (report != nullptr && report->round == round_) {
    reported_[from] = true;
    latest_ = *report;
  }
  decide(Received{from, message});
  if (context_.scenario.mutation == Mutation::kEarlyConclusion) forge_last_report();
}

void ModelServer::mishear(const std::string& worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  registered_.erase(found->second);
  context_.chance.percent(50) ? found->second->abort(kServer) : found->second->close(kServer);
}

void ModelServer::reset(const std::string& worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  note("the connection of " + worker + " is reset");
  found->second->reset();
}

/// Models Job::enter.
void ModelServer::enter(Connection& connection, const Register& registration) {
  const std::string& incarnation = registration.incarnation;
  if (Connection* earlier = std::exchange(workers_[incarnation], &connection)) {
    registered_.erase(earlier);
    earlier->abort(kServer);
  }
  registered_[&connection] = incarnation;
  const Decision decision = decide(Registered{registration});
  // A worker that was not welcomed has been told the reason, so its connection ends.
  if (is_up() && !welcomes(decision, incarnation)) close(incarnation);
}

void ModelServer::lost(const Connection& connection) {
  const auto found = registered_.find(&connection);
  if (found == registered_.end()) return;
  const std::string incarnation = found->second;
  registered_.erase(found);
  workers_.erase(incarnation);
  if (context_.scenario.mutation == Mutation::kLostMeansDead) {
    decide(ProcessEnded{incarnation, "connection closed"});
  }
  decide(ConnectionLost{incarnation, "connection closed"});
}

Decision ModelServer::decide(const Event& event) {
  if (!is_up()) return {};
  const Decision decision = membership_->decide(event, context_.time.now());
  if (!decision.reason.empty()) note(decision.reason);
  count_costs(decision);
  tell_of_end(decision);
  for (const Action& action : decision.actions) {
    if (actions_to_crash_ && (*actions_to_crash_)-- == 0) {
      context_.tally.count(Fault::kServerCrash);
      crash();
    }
    if (!is_up()) break;
    perform(action);
  }
  if (is_up()) schedule_tick();
  return decision;
}

/// Before anything is done about it: whether the job may end depends on how its workers are now.
void ModelServer::tell_of_end(const Decision& decision) {
  const Phase phase = membership_->phase();
  if (over_ || (phase != Phase::kFailed && phase != Phase::kDone)) return;
  over_ = true;
  const Oracle::End how = phase == Phase::kFailed  ? Oracle::End::kFailed
                          : membership_->stopped() ? Oracle::End::kStopped
                                                   : Oracle::End::kDone;
  context_.oracle.job_ends(how, membership_->view(), decision.reason);
}

/// Messages to workers that are not connected count too: they are made all the same.
void ModelServer::count_costs(const Decision& decision) const {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::map<std::string, unsigned> sent;
  for (const Action& action : decision.actions) {
    const auto* message = std::get_if<SendTo>(&action);
    if (message == nullptr) continue;
    messages += message->incarnations.size();
    bytes += encode(message->message).size() * message->incarnations.size();
    for (const std::string& incarnation : message->incarnations) {
      if (++sent[incarnation] <= kMostMessages) continue;
      context_.oracle.wrong("the server sends " + incarnation + " more than " +
                            std::to_string(kMostMessages) + " messages for one event");
    }
  }
  context_.tally.decisions.count(workers_.size(), messages, bytes);
}

void ModelServer::perform(const Action& action) {
  if (const auto* sent = std::get_if<SendTo>(&action)) {
    for (const std::string& incarnation : sent->incarnations) send(incarnation, sent->message);
  } else if (const auto* closing = std::get_if<CloseConnection>(&action)) {
    close(closing->incarnation);
  } else if (const auto* journal = std::get_if<Journal>(&action)) {
    context_.oracle.decided(journal->view);
    write(journal->view);
  } else if (const auto* end = std::get_if<JournalEnd>(&action)) {
    write(end->word);
  } else if (const auto* requests = std::get_if<JournalRequests>(&action)) {
    write(requests->requests);
  } else {
    write(JournalFloor{std::get<ReserveGenerations>(action).up_to});
  }
}

void ModelServer::write(const JournalRecord& record) {
  if (!remains_) return disk_.append(record);
  note("dies in a write to its journal");
  context_.tally.count(*remains_ == Disk::Remains::kNothing ? Fault::kLostAppend
                       : *remains_ == Disk::Remains::kTorn  ? Fault::kTornAppend
                                                            : Fault::kUnacknowledged);
  disk_.append_and_crash(record, *remains_, context_.chance);
  crash();
}

void ModelServer::send(const std::string& to, const Message& message) {
  if (context_.scenario.mutation == Mutation::kEarlyConclusion) watch(message, to);
  const auto found = workers_.find(to);
  if (found == workers_.end()) return;
  ModelWorker& worker = *context_.workers[node_of(to)];
  found->second->send(kServer, [&worker, connection = found->second, message] {
    worker.receive(*connection, message);
  });
}

void ModelServer::close(const std::string& who) {
  const auto found = workers_.find(who);
  if (found == workers_.end()) return;
  registered_.erase(found->second);
  found->second->close(kServer);
  workers_.erase(found);
}

/// Ticks come a little late, as timers do.
void ModelServer::schedule_tick() {
  const TimePoint due = membership_->next_tick();
  if (due == tick_at_) return;
  tick_at_ = due;
  if (due == TimePoint::max()) return;
  context_.time.at(due + context_.chance.between(Milliseconds(0), Milliseconds(1)), [this, due] {
    if (tick_at_ != due) return;
    tick_at_ = TimePoint::max();
    decide(Tick{});
  });
}

void ModelServer::watch(const Message& sent, const std::string& to) {
  const auto* freeze = std::get_if<Freeze>(&sent);
  if (freeze == nullptr) return;
  if (freeze->round != round_) {
    round_ = freeze->round;
    reported_.clear();
    latest_.reset();
  }
  if (freeze->at_commit == 0) reported_[to] = false;
}

/// The mistake of a server that is content with one report less than there are members: makes the
/// last one up, as if that member stood where another one does.
void ModelServer::forge_last_report() {
  if (!is_up() || !latest_) return;
  const auto missing = [](const auto& entry) { return !entry.second; };
  if (std::count_if(reported_.begin(), reported_.end(), missing) != 1) return;
  const auto last = std::find_if(reported_.begin(), reported_.end(), missing);
  Report forged = *latest_;
  for (Report::Lane& lane : forged.lanes) lane.needs.clear();
  last->second = true;
  note("makes up the report of " + last->first);
  decide(Received{last->first, forged});
}

}  // namespace elastic::simulation
