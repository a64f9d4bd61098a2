#include "rendezvous/server/job.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace elastic::rendezvous {

namespace {

/// So that launchers and `elasticrun ctl` can still ask how it ended.
constexpr Milliseconds kLingerWhenOver{2000};
/// Workers may come back from a broken connection.
constexpr Milliseconds kLingerWhenEmpty{10000};
/// Whoever started this server may have died before it registered.
constexpr Milliseconds kFirstWorker{60000};

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

Job::Job(boost::asio::io_context& io, std::string name, MembershipOptions options,
         std::unique_ptr<JournalSink> journal, Memory memory)
    : name_(std::move(name)),
      membership_(options, std::move(memory)),
      journal_(std::move(journal)),
      tick_(io),
      end_(io),
      phase_(membership_.phase()) {}

bool Job::enter(const Register& registration, const Peer& peer) {
  const std::string& incarnation = registration.incarnation;
  const auto refuse = [&](const std::string& why) {
    peer->send(Refuse{why});
    peer->close();
    return false;
  };
  if (!abandoned_.empty()) return refuse(abandoned_);
  if (incarnation.empty()) return refuse("a worker must have an incarnation");
  // Before the decision, whose first actions are for this connection.
  if (Peer earlier = std::exchange(workers_[incarnation], peer)) {
    earlier->abort("the worker came back on another connection");
  }
  had_workers_ = true;
  const Decision decision = decide(Registered{registration});
  const bool welcomed =
      std::any_of(decision.actions.begin(), decision.actions.end(), [&](const Action& action) {
        const auto* sent = std::get_if<SendTo>(&action);
        return sent != nullptr && sent->incarnation == incarnation &&
               std::holds_alternative<Welcome>(sent->message);
      });
  if (welcomed) return true;
  workers_.erase(incarnation);
  watch_end();
  if (!decision.ok) return refuse(decision.reason);
  peer->close();
  return false;
}

void Job::received(const std::string& incarnation, const Message& message) {
  decide(Received{incarnation, message});
}

void Job::lost(const std::string& incarnation, const Peer& peer, const std::string& why) {
  const auto found = workers_.find(incarnation);
  if (found == workers_.end() || found->second != peer) return;
  workers_.erase(found);
  decide(ConnectionLost{incarnation, why});
}

Decision Job::decide(const Event& event) {
  Decision decision = membership_.decide(event, Clock::now());
  if (!decision.reason.empty()) {
    log::get().info("job {} generation {}: {}", name_, membership_.view().generation,
                    decision.reason);
  }
  for (const Action& action : decision.actions) {
    if (!abandoned_.empty()) break;
    perform(action);
  }
  note_phase(decision.reason);
  arm_tick();
  watch_end();
  return decision;
}

void Job::perform(const Action& action) {
  std::visit(
      Overloaded{[this](const SendTo& send) {
                   const auto found = workers_.find(send.incarnation);
                   if (found != workers_.end()) found->second->send(send.message);
                 },
                 [this](const CloseConnection& close) {
                   const auto found = workers_.find(close.incarnation);
                   if (found == workers_.end()) return;
                   found->second->close();
                   workers_.erase(found);
                 },
                 [this](const Journal& journal) { make_durable(journal_->append(journal.view)); },
                 [this](const ReserveGenerations& reserve) {
                   make_durable(journal_->append_floor(reserve.up_to));
                 }},
      action);
}

void Job::make_durable(const Status& written) {
  if (!written.ok()) abandon(written);
}

/// A view that could be forgotten must not be announced, so the job ends here.
void Job::abandon(const Status& why) {
  abandoned_ = "the view cannot be made durable: " + why.message();
  log::get().error("job {}: {}", name_, abandoned_);
  for (const auto& [incarnation, peer] : std::exchange(workers_, {})) {
    peer->send(Fail{abandoned_});
    peer->close();
  }
}

void Job::arm_tick() {
  const TimePoint due = membership_.next_tick();
  if (due == TimePoint::max() || !abandoned_.empty()) {
    tick_.cancel();
    return;
  }
  tick_.expires_at(due);
  tick_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    try {
      self->decide(Tick{});
    } catch (const std::exception& failure) {
      log::get().error("job {}: {}", self->name_, failure.what());
    }
  });
}

void Job::note_phase(const std::string& reason) {
  const Phase now = abandoned_.empty() ? membership_.phase() : Phase::kFailed;
  if (now == phase_) return;
  phase_ = now;
  phase_text_ = abandoned_.empty() ? reason : abandoned_;
  for (const Peer& launcher : launchers_) launcher->send(state());
}

JobState Job::state() const {
  return {rendezvous::name(phase_), phase_text_};
}

StatusReply Job::status() const {
  StatusReply reply = membership_.status(Clock::now());
  reply.job = name_;
  reply.phase = rendezvous::name(phase_);
  return reply;
}

Message Job::answer(const Message& request) {
  const auto done = [](const Decision& decision) { return Done{decision.ok, decision.reason}; };
  return std::visit(
      Overloaded{[&](const StatusRequest&) -> Message { return status(); },
                 [&](const RemoveRequest& remove) -> Message {
                   return done(decide(RemoveWorker{remove.rank}));
                 },
                 [&](const StopRequest&) -> Message { return done(decide(StopJob{})); },
                 [&](const AddRequest& wanted) -> Message { return add(wanted); },
                 [&](const auto&) -> Message {
                   return Done{false, "a control connection cannot ask for '" +
                                          std::string(type_of(request)) + "'"};
                 }},
      request);
}

Done Job::add(const AddRequest& request) {
  if (request.count < 1) {
    return {false, "cannot add " + std::to_string(request.count) + " workers"};
  }
  if (phase_ == Phase::kDone || phase_ == Phase::kFailed) return {false, "the job is over"};
  if (launchers_.empty()) {
    return {false,
            "no launcher is connected that could start workers; start them yourself with the job's "
            "address and secret"};
  }
  launchers_.front()->send(Spawn{request.count});
  return {true, "the launcher is to start " + std::to_string(request.count) + " more"};
}

void Job::add_launcher(const Peer& peer) {
  launchers_.push_back(peer);
  peer->send(state());
}

void Job::remove_launcher(const Peer& peer) {
  std::erase(launchers_, peer);
}

void Job::when_over(std::function<void()> over) {
  over_ = std::move(over);
  watch_end();
}

void Job::watch_end() {
  if (!over_) return;
  TimePoint ends = TimePoint::max();
  if (phase_ == Phase::kDone || phase_ == Phase::kFailed) {
    ends = Clock::now() + kLingerWhenOver;
  } else if (workers_.empty()) {
    ends = Clock::now() + (had_workers_ ? kLingerWhenEmpty : kFirstWorker);
  }
  if (ends == TimePoint::max()) {
    ends_ = ends;
    end_.cancel();
  }
  if (ends >= ends_) return;
  ends_ = ends;
  end_.expires_at(ends);
  end_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->over_) std::exchange(self->over_, {})();
  });
}

void Job::stop() {
  over_ = {};
  tick_.cancel();
  end_.cancel();
}

}  // namespace elastic::rendezvous
