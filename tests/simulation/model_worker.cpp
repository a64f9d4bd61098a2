#include "model_worker.hpp"

#include <utility>

#include "oracle.hpp"
#include "runtime/farewell_wait.hpp"

namespace elastic::simulation {

using namespace rendezvous;
using runtime::Participation;

ModelWorker::ModelWorker(Node self, SimContext& context)
    : context_(context),
      process_(self, context),
      gate_([this](std::uint64_t round) {
        at_boundary_ = true;
        process_.post([this, round] { participation_.on_paused(round); });
      }),
      program_(*this, process_),
      client_(process_, {[this] {
                           Register identity;
                           identity.incarnation = incarnation();
                           identity.endpoints.host =
                               "h" + std::to_string(context_.scenario.host_of(process_.self()));
                           return participation_.registration(std::move(identity));
                         },
                         [this] { return heartbeat(); },
                         [this](const Message& message) { on_message(message); },
                         [this] {
                           {
                             const MutexLock lock(mutex_);
                             connected_ = false;
                           }
                           changed_.notify_all();
                           participation_.on_disconnected();
                         }}),
      participation_(process_.incarnation(), kLanes, *this),
      linker_(process_, kLanes) {
  if (context.scenario.measures) record_ = std::make_shared<collectives::TuningRecord>();
  for (auto& event : abort_events_) event = std::make_shared<EventFd>();
  for (std::size_t i = 0; i < kLanes; ++i) lanes_[i] = make_lane(i);
}

ModelWorker::~ModelWorker() = default;

rendezvous::Heartbeat ModelWorker::heartbeat() const {
  rendezvous::Heartbeat heartbeat = participation_.heartbeat();
  heartbeat.commits = gate_.commits();
  return heartbeat;
}

std::unique_ptr<coordinator::Lane> ModelWorker::make_lane(std::size_t index) {
  coordinator::Lane::Callbacks callbacks;
  callbacks.on_quiesced = [this, index](std::uint64_t position, std::string needs) {
    process_.post([this, index, where = Participation::Lane{position, std::move(needs)}] {
      if (still_to_freeze_ > 0) {
        if (--still_to_freeze_ == 0) connect(next_);
        return;
      }
      needs_[index] = where.needs;
      participation_.on_quiesced(index, where);
    });
  };
  callbacks.on_suspect = [this](std::uint64_t generation, std::string incarnation,
                                std::string reason) {
    if (context_.scenario.mutation == Mutation::kUnreportedLink) return;
    process_.post(
        [this, suspicion = Suspect{generation, std::move(incarnation), std::move(reason)}] {
          note("suspects " + suspicion.incarnation + ": " + suspicion.reason);
          participation_.suspect(suspicion);
        });
  };
  callbacks.on_leave = [this](const Status& why) {
    if (context_.scenario.mutation != Mutation::kStayAfterException) leave_with_error(why);
  };
  return std::make_unique<coordinator::Lane>("lane " + std::to_string(index), callbacks, spare_);
}

void ModelWorker::start() {
  process_.start();
  trainer_ = &context_.threads.start(process_, "trainer", [this] { run_program(); });
  process_.post([this] { client_.dial(); });
}

void ModelWorker::run_program() {
  coordinator::Coordinator::Options options;
  options.bucket_bytes = context_.scenario.bucket_bytes;
  options.view_timeout = view_timeout();
  // The mistake is in unnamed calls alone: a named one that has timed out would end it.
  if (context_.scenario.mutation == Mutation::kForgottenTimeout) {
    options.view_timeout = kLongViewTimeout;
  }
  coordinator_ = std::make_unique<coordinator::Coordinator>(*lanes_[1], options);
  program_.run();
}

std::shared_ptr<const runtime::Roster> ModelWorker::roster() const {
  if (context_.scenario.mutation != Mutation::kPresentRoster) return roster_;
  return std::make_shared<const runtime::Roster>(
      runtime::roster_of(*members_, members_->generation));
}

Milliseconds ModelWorker::view_timeout() const {
  return context_.scenario.view_timeout;
}

void ModelWorker::note(const std::string& what) const {
  context_.trace.line(incarnation(), [&] { return what; });
}

void ModelWorker::kill() {
  if (over()) return;
  note("is killed");
  killed_ = true;
  exit(context_.chance.percent(50));
}

void ModelWorker::exit(bool unsent_is_lost) {
  process_.end();
  client_.end(unsent_is_lost);
  context_.network.end(process_.self(), context_.chance.percent(50));
}

void ModelWorker::pause(Duration length) {
  if (over() || process_.asleep()) return;
  note("is stopped");
  process_.sleep();
  context_.time.after(length, [this] {
    if (over()) return;
    note("continues");
    process_.wake();
  });
}

void ModelWorker::suspect(Node peer) {
  if (!answers()) return;
  process_.post([this, peer] {
    participation_.suspect({generation(), incarnation_of(peer), "it seemed so"});
  });
}

void ModelWorker::mishear() {
  process_.post([this] { client_.mishear(); });
}

void ModelWorker::receive(const Connection& connection, const Message& message) {
  process_.post([this, &connection, message] { client_.receive(connection, message); });
}

/// Everything that its threads wait for ends.
void ModelWorker::dismantle() {
  process_.dismantle();
  context_.network.end(process_.self(), false);
  context_.threads.start(process_, "dismantling", [this] {
    end_with(Status(Code::kNotInitialized, "the run is over"));
    context_.threads.join(process_.control_thread());
    context_.threads.join(*trainer_);
    lanes_ = {};
  });
}

bool ModelWorker::all_threads_ended() const {
  return context_.threads.all_ended(process_);
}

Status ModelWorker::wait_until_member() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return !ended_.ok() || member_; });
  return ended_;
}

Status ModelWorker::wait_until_ended() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return !ended_.ok(); });
  return ended_;
}

/// Models runtime::Control::leave, but an early leaver may not stay to hear that it may go.
void ModelWorker::leave(bool done) {
  note(done ? "is at the job's end" : "leaves");
  program_.says_bye();
  process_.post([this, done] {
    if (done) send(heartbeat());
    participation_.bye({done, {}, false});
  });
  if (!done) return;
  MutexLock lock(mutex_);
  runtime::wait_for_farewell(lock, changed_, connected_,
                             [&]() ELASTIC_REQUIRES(mutex_) { return farewell_ || !ended_.ok(); });
}

/// Models runtime::Control::leave_with_error.
void ModelWorker::leave_with_error(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (!ended_.ok()) return;
    ended_ = why;
  }
  left_with_error_ = true;
  note("cannot go on: " + why.message());
  if (why.code() == Code::kTimeout) ++context_.tally.timeouts;
  program_.says_bye();
  process_.post([this] {
    participation_.bye({false, {}, true});
    client_.end(false);
  });
  end_with(why);
}

bool ModelWorker::is_in() const {
  const MutexLock lock(mutex_);
  return ended_.ok();
}

void ModelWorker::finish(const Status& why) {
  if (!process_.over() && why.code() == Code::kInternal && !program_.idle()) {
    context_.oracle.wrong(incarnation() + " ends: " + why.message());
  }
  end_with(Status(Code::kNotInitialized, "the program has ended"));
  const bool timed_out = wait_until_ended().code() == Code::kTimeout;
  program_.join_background();
  coordinator_.reset();
  if (process_.over()) return;
  note("ends: " + why.message());
  exit(false);
  const bool is_out = why.code() == Code::kEvicted || (why.code() == Code::kTimeout && timed_out);
  if (is_out && context_.scenario.uses_run) context_.rejoin(process_.self());
}

void ModelWorker::end_with(const Status& reason) {
  {
    const MutexLock lock(mutex_);
    if (ended_.ok()) ended_ = reason;
  }
  changed_.notify_all();
  gate_.close(reason);
  for (const auto& lane : lanes_) lane->close(reason);
}

void ModelWorker::on_message(const Message& message) {
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    {
      const MutexLock lock(mutex_);
      connected_ = true;
    }
    changed_.notify_all();
    participation_.on_welcome();
    if (!welcome->joining || !context_.scenario.uses_run || std::exchange(ready_, true)) return;
    process_.later(Milliseconds(1), Milliseconds(50), [this] { participation_.ready({}); });
  } else if (const auto* freeze = std::get_if<Freeze>(&message)) {
    participation_.on_freeze(*freeze);
  } else if (const auto* check = std::get_if<Check>(&message)) {
    participation_.on_check(*check);
  } else if (const auto* announce = std::get_if<Announce>(&message)) {
    announced_.take(announce->view);
    participation_.on_announce(announce->view);
  } else if (const auto* change = std::get_if<AnnounceChange>(&message)) {
    if (const Status known = announced_.take(change->change); !known.ok()) {
      return context_.oracle.wrong(process_.incarnation() + ": " + known.message());
    }
    participation_.on_announce(announced_.view());
  } else if (const auto* request = std::get_if<ViewRequest>(&message)) {
    participation_.on_view_request(*request);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    on_farewell(*farewell);
  } else if (const auto* fail = std::get_if<Fail>(&message)) {
    note("ends: " + fail->reason);
    end_with(Status(Code::kBelowMinimum, fail->reason));
  } else if (const auto* refuse = std::get_if<Refuse>(&message)) {
    note("is refused: " + refuse->reason);
    end_with(Status(Code::kRefused, refuse->reason));
  }
}

void ModelWorker::on_farewell(const Farewell& farewell) {
  note("may go: " + farewell.text);
  {
    const MutexLock lock(mutex_);
    farewell_ = true;
  }
  using Reason = Farewell::Reason;
  const Code code = farewell.reason == Reason::kEvicted   ? Code::kEvicted
                    : farewell.reason == Reason::kRemoved ? Code::kRemoved
                    : farewell.reason == Reason::kStopped ? Code::kStopped
                                                          : Code::kDone;
  end_with(Status(code, farewell.text));
}

void ModelWorker::send(const Message& message) {
  if (const auto* report = std::get_if<Report>(&message)) {
    reported_.clear();
    for (std::size_t i = 0; i < report->lanes.size(); ++i) {
      reported_.push_back(report->lanes[i].position);
      needs_[i] = report->lanes[i].needs;
    }
    context_.trace.line(incarnation(), [&] {
      std::string text = "reports for round " + std::to_string(report->round) + " of generation " +
                         std::to_string(report->generation) + ":";
      for (const auto& lane : report->lanes) {
        text += " " + std::to_string(lane.position) +
                (lane.needs.empty() ? "" : " needs " + lane.needs);
      }
      return text;
    });
  }
  client_.send(message);
}

void ModelWorker::freeze_lanes() {
  if (context_.scenario.mutation == Mutation::kUnfrozenBoundary && at_boundary_) {
    still_to_freeze_ = kLanes;
    for (std::size_t i = 0; i < kLanes; ++i) {
      process_.post([this, i] { participation_.on_quiesced(i, {lanes_[i]->position(), {}}); });
    }
    return;
  }
  for (const auto& lane : lanes_) lane->freeze();
}

void ModelWorker::begin_lanes_at(const std::vector<std::uint64_t>& positions) {
  for (std::size_t i = 0; i < kLanes; ++i) lanes_[i]->begin_at(positions[i]);
}

void ModelWorker::install(const View& view) {
  note("is in view " + std::to_string(view.generation));
  context_.oracle.installed(process_.self(), view_.generation, view);
  // After a report nothing of its generation is completed.
  for (std::size_t i = 0; i < reported_.size(); ++i) {
    if (reported_[i] == lanes_[i]->position()) continue;
    context_.oracle.wrong(incarnation() + " reported position " + std::to_string(reported_[i]) +
                          " of lane " + std::to_string(i) + " and came to " +
                          std::to_string(lanes_[i]->position()));
  }
  reported_.clear();
  const bool first = view_.generation == 0;
  view_ = view;
  members_ = members_in(view);
  if (!roster_) set_roster(runtime::roster_of(*members_, 0));
  std::array<std::shared_ptr<coordinator::LaneView>, kLanes> views;
  for (std::size_t i = 0; i < kLanes; ++i) views[i] = lane_view(view, i);
  links_.clear();
  for (std::size_t i = 0; i < kLanes; ++i) lanes_[i]->install(std::move(views[i]));
  if (!first) return;
  if (context_.scenario.uses_run && !std::exchange(ready_, true)) participation_.ready({});
  {
    const MutexLock lock(mutex_);
    member_ = true;
  }
  changed_.notify_all();
}

Participation::Promise ModelWorker::propose(std::uint64_t round, std::uint64_t at_commit) {
  return gate_.propose(round, at_commit);
}

std::uint64_t ModelWorker::position(std::size_t lane) const {
  return lanes_[lane]->position();
}

std::vector<std::uint64_t> ModelWorker::positions() const {
  std::vector<std::uint64_t> positions;
  for (const auto& lane : lanes_) positions.push_back(lane->position());
  return positions;
}

void ModelWorker::end(const Status& reason) {
  context_.oracle.wrong(incarnation() + " ends: " + reason.message());
  end_with(reason);
}

std::string ModelWorker::describe() const {
  std::string text =
      incarnation() + ": generation " + std::to_string(generation()) + ", " + program_.describe();
  for (const auto& lane : lanes_) text += ", " + std::to_string(lane->position());
  if (killed_) text += ", killed";
  if (over()) text += ", over";
  if (process_.asleep()) text += ", asleep";
  if (view_.generation != generation()) text += ", installing";
  if (!over()) text += "; " + context_.threads.describe(process_);
  return text;
}

}  // namespace elastic::simulation
