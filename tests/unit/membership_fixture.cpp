#include "membership_fixture.hpp"

#include <algorithm>

namespace elastic::rendezvous {

void MembershipTest::start(MembershipOptions options) {
  options_ = options;
  membership_.emplace(options);
}

void MembershipTest::restart(RecoveredState memory) {
  if (!memory.view) journal_.clear();
  connected_.clear();
  membership_.emplace(options_, std::move(memory));
}

void MembershipTest::start_with(const Names& names, MembershipOptions options) {
  options.initial_np = static_cast<int>(names.size());
  start(options);
  for (const std::string& name : names) join(name);
  ASSERT_EQ(members(), names);
}

void MembershipTest::start_with_joiner(const Names& names, const std::string& joiner) {
  start_with(names);
  ready(names);
  join(joiner);
  ready({joiner});
  stop_at_boundary(names);
  Names all = names;
  all.push_back(joiner);
  ASSERT_EQ(members(), all);
}

Decision MembershipTest::join(const std::string& worker, std::int64_t order) {
  connected_.insert(worker);
  Register registration;
  registration.incarnation = worker;
  registration.order = order;
  return decide(Registered{registration});
}

Decision MembershipTest::join_launched(const std::string& worker) {
  connected_.insert(worker);
  Registered event;
  event.registration.incarnation = worker;
  event.launched = true;
  return decide(event);
}

Decision MembershipTest::join_linked(const std::string& worker, std::uint64_t most) {
  connected_.insert(worker);
  Register registration;
  registration.incarnation = worker;
  registration.label = worker;
  registration.all_linked = most;
  return decide(Registered{registration});
}

Decision MembershipTest::join_again(const std::string& worker, std::uint64_t last_generation) {
  connected_.insert(worker);
  Register registration;
  registration.incarnation = worker;
  registration.last_generation = last_generation;
  return decide(Registered{registration});
}

Decision MembershipTest::come_back(const std::string& worker, bool in_round) {
  connected_.insert(worker);
  Register registration;
  registration.incarnation = worker;
  registration.generation = last<Announce>(worker)->view->generation;
  registration.in_round = in_round;
  return decide(Registered{registration});
}

Decision MembershipTest::say(const std::string& worker, Message message) {
  return decide(Received{worker, std::move(message)});
}

Decision MembershipTest::die(const std::string& worker, const std::string& why) {
  decide(ProcessEnded{worker, "its process has ended"});
  return lose_connection(worker, why);
}

Decision MembershipTest::lose_connection(const std::string& worker, const std::string& why) {
  connected_.erase(worker);
  return decide(ConnectionLost{worker, why});
}

Decision MembershipTest::decide(const Event& event) {
  Decision decision = membership_->decide(event, now_);
  for (const Action& action : decision.actions) {
    if (const auto* sent = std::get_if<SendTo>(&action)) {
      for (const std::string& incarnation : sent->incarnations) {
        EXPECT_TRUE(connected_.contains(incarnation)) << incarnation;
        receive(incarnation, sent->message);
      }
    } else if (const auto* closed = std::get_if<CloseConnection>(&action)) {
      connected_.erase(closed->incarnation);
    } else if (std::holds_alternative<Journal>(action)) {
      const std::uint64_t generation = std::get<Journal>(action).view.generation;
      EXPECT_TRUE(journal_.empty() || journal_.back() <= generation);
      journal_.push_back(generation);
      journaled_end_.reset();
    } else if (const auto* end = std::get_if<JournalEnd>(&action)) {
      journaled_end_ = end->word;
      journaled_requests_ = {};
    } else if (const auto* kept = std::get_if<JournalRequests>(&action)) {
      journaled_requests_ = kept->requests;
    }
  }
  reasons_ += decision.reason + "\n";
  to_end_.insert(to_end_.end(), decision.silent.begin(), decision.silent.end());
  return decision;
}

/// A view that came as a change is in the inbox as a whole.
void MembershipTest::receive(const std::string& worker, Message message) {
  AnnouncedView& announced = announced_[worker];
  if (const auto* change = std::get_if<AnnounceChange>(&message)) {
    const Status known = announced.take(change->change);
    EXPECT_TRUE(known.ok()) << known.message();
    message = Announce{announced.view()};
  } else if (const auto* announce = std::get_if<Announce>(&message)) {
    announced.take(announce->view);
  }
  if (const auto* announce = std::get_if<Announce>(&message)) {
    EXPECT_FALSE(journal_.empty()) << "announced before it was durable";
    EXPECT_EQ(journal_.back(), announce->view->generation);
  }
  const auto* request = std::get_if<ViewRequest>(&message);
  if (request != nullptr && announced.view()->generation == request->generation) {
    say(worker, KnownView{announced.view()});
  }
  inbox_[worker].push_back(std::move(message));
}

void MembershipTest::report(const std::string& worker, std::uint64_t position,
                            std::uint64_t commits, bool synced, const std::string& needs) {
  const auto freeze = last<Freeze>(worker);
  ASSERT_TRUE(freeze) << worker << " was not asked to freeze";
  Report report{freeze->generation, freeze->round, {}, commits, synced};
  report.lanes.resize(view().lanes.size());
  report.lanes[0] = {position, needs};
  say(worker, report);
}

void MembershipTest::report_at_boundary(const std::string& worker, std::uint64_t position,
                                        std::uint64_t commits) {
  const auto freeze = last<Freeze>(worker);
  ASSERT_TRUE(freeze) << worker << " was not asked to freeze";
  ASSERT_EQ(freeze->at_commit, 0U) << worker;
  Report report{freeze->generation, freeze->round, {}, commits, true, true};
  report.lanes.resize(view().lanes.size());
  report.lanes[0] = {position, ""};
  say(worker, report);
}

void MembershipTest::report_all(const Names& workers, std::uint64_t position, std::uint64_t commits,
                                bool synced) {
  for (const std::string& worker : workers) report(worker, position, commits, synced);
}

void MembershipTest::pause_at_boundary(const Names& workers) {
  for (const std::string& worker : workers) {
    const auto freeze = last<Freeze>(worker);
    ASSERT_TRUE(freeze) << worker;
    ASSERT_NE(freeze->at_commit, 0U) << worker;
    say(worker, Promise{freeze->round, true, freeze->at_commit - 1});
  }
  for (const std::string& worker : workers) {
    const auto freeze = last<Freeze>(worker);
    stopped_after_ = freeze->at_commit;
    say(worker, Paused{freeze->round, freeze->at_commit});
  }
}

void MembershipTest::stop_at_boundary(const Names& workers, std::uint64_t position) {
  pause_at_boundary(workers);
  for (const std::string& worker : workers) report_at_boundary(worker, position, stopped_after_);
}

void MembershipTest::ready(const Names& workers) {
  for (const std::string& worker : workers) say(worker, Ready{kLayout});
}

void MembershipTest::finish_alone(const std::string& worker, const Names& members) {
  say(worker, Heartbeat{1, {9, 0}, 5, true});
  say(worker, Bye{true});
  pass(Milliseconds(510));
  report_all(members, 9, 5, true);
}

void MembershipTest::pass(Milliseconds time) {
  const TimePoint until = now_ + time;
  TimePoint beat = now_ + Milliseconds(50);
  while (now_ < until) {
    const TimePoint tick = membership_->next_tick();
    now_ = std::min({std::max(tick, now_), beat, until});
    if (now_ == beat) {
      beat += Milliseconds(50);
      const std::set<std::string> beating = connected_;
      for (const std::string& worker : beating) {
        if (!silent_.contains(worker)) say(worker, Heartbeat{});
      }
    }
    if (tick <= now_) decide(Tick{});
  }
}

MembershipTest::Names MembershipTest::members() const {
  Names names;
  for (const Member& member : view().members) names.push_back(member.incarnation);
  return names;
}

}  // namespace elastic::rendezvous
