#include "collectives/model/plan_walk.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>

namespace elastic::model {
namespace {

using plan::Step;

/// Remainders of rounding: bytes of an activity, and seconds.
constexpr double kNoBytes = 1e-3;
constexpr double kNoTime = 1e-12;

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

PlanWalk::PlanWalk(const Network& network, const plan::Hosts& hosts, int flows,
                   const std::vector<PlanOf>& plans)
    : PlanWalk(network, hosts, flows, plans, Symmetry::find(hosts, plans)) {}

PlanWalk::PlanWalk(const Network& network, const plan::Hosts& hosts, int flows,
                   const std::vector<PlanOf>& plans, const Symmetry& symmetry)
    : hosts_(hosts),
      symmetry_(symmetry),
      fabric_(network, hosts, symmetry_.kind() == Symmetry::Kind::kNone ? hosts.count() : 1,
              flows) {
  for (const PlanOf& plan : plans) {
    auto& of_ranks = schedules_.emplace_back();
    for (const int rank : symmetry_.ranks()) of_ranks.emplace_back(plan(rank));
  }
  make_channels();
}

void PlanWalk::make_channels() {
  std::map<std::tuple<int, int, int>, std::size_t> known;
  std::vector<std::size_t> index_of(static_cast<std::size_t>(hosts_.size()));
  for (std::size_t i = 0; i < symmetry_.ranks().size(); ++i) {
    index_of[static_cast<std::size_t>(symmetry_.ranks()[i])] = i;
  }
  const auto channel = [&](int from, int to) {
    const int from_walked = symmetry_.stands_for(from);
    const int to_walked = symmetry_.stands_for(to);
    const auto [found, is_new] =
        known.try_emplace({from_walked, to_walked, symmetry_.distance(from, to)}, channels_.size());
    if (is_new) {
      channels_.push_back({.from_rank = from_walked,
                           .to_rank = to_walked,
                           .inside_host = hosts_.of(from) == hosts_.of(to),
                           .to = index_of[static_cast<std::size_t>(to_walked)],
                           .to_queue = std::vector(schedules_.size(), Channel::kNone)});
    }
    return found->second;
  };
  for (std::size_t plan = 0; plan < schedules_.size(); ++plan) {
    auto& of_ranks = first_progress_.emplace_back();
    for (std::size_t i = 0; i < schedules_[plan].size(); ++i) {
      const int rank = symmetry_.ranks()[i];
      auto& of_queues = of_ranks.emplace_back();
      for (const Queue& queue : schedules_[plan][i].queues()) {
        QueueProgress& progress = of_queues.emplace_back();
        if (!queue.sends.empty()) progress.out = channel(rank, queue.peer);
        if (queue.receives.empty()) continue;
        progress.in = channel(queue.peer, rank);
        channels_[progress.in].to_queue[plan] = of_queues.size() - 1;
      }
    }
  }
}

std::vector<double> PlanWalk::run(int calls) {
  calls_ = calls;
  now_ = 0;
  used_.assign(fabric_.resources().size(), 0);
  ends_.assign(static_cast<std::size_t>(calls), 0);
  capacities_.emplace(fabric_.resources());
  ranks_.assign(symmetry_.ranks().size(), {});
  for (std::size_t i = 0; i < ranks_.size(); ++i) begin_plan(i);
  settle();
  while (!activities_.empty() || !arrivals_.empty()) {
    if (std::exchange(shares_changed_, false)) {
      fair_share_.share(activities_, capacities_->now());
      capacities_->observe(activities_);
    }
    advance(until_next_event());
    end_activities();
    take_arrivals();
    settle();
  }
  for (double& end : ends_) end /= static_cast<double>(ranks_.size());
  for (const Rank& rank : ranks_) {
    if (rank.call < calls_) throw std::logic_error("a plan waits for a message that is never sent");
  }
  return ends_;
}

double PlanWalk::busy(Fabric::Kind kind) const {
  double most = 0;
  const auto& resources = fabric_.resources();
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (resources[i].kind == kind) most = std::max(most, used_[i] / resources[i].capacity);
  }
  return now_ > 0 ? most / now_ : 0;
}

// --- a rank and its steps

void PlanWalk::begin_plan(std::size_t index) {
  Rank& rank = ranks_[index];
  const plan::Schedule& steps = schedule(rank, index);
  rank.left = steps.steps();
  rank.waits = steps.waits();
  rank.queues = first_progress_[rank.plan][index];
  if (rank.left == 0) return end_plan(index);
  for (const std::int32_t step : steps.ready()) perform(index, step);
  for (std::size_t queue = 0; queue < rank.queues.size(); ++queue) {
    receive(index, queue);
    post_sends(index, queue);
  }
}

void PlanWalk::end_plan(std::size_t index) {
  Rank& rank = ranks_[index];
  if (++rank.plan == schedules_.size()) {
    rank.plan = 0;
    ends_[static_cast<std::size_t>(rank.call)] += now_;
    if (++rank.call == calls_) return;
  }
  begin_plan(index);
}

void PlanWalk::complete(std::size_t index, std::int32_t step) {
  completed_.emplace_back(index, step);
}

/// Releases the steps that wait for completed ones, until none completes at once.
void PlanWalk::settle() {
  while (!completed_.empty()) {
    const auto [index, step] = completed_.back();
    completed_.pop_back();
    Rank& rank = ranks_[index];
    --rank.left;
    for (const std::int32_t waiting : schedule(rank, index).dependents(step)) {
      if (--rank.waits[static_cast<std::size_t>(waiting)] == 0) release(index, waiting);
    }
    if (rank.left == 0) end_plan(index);
  }
}

void PlanWalk::release(std::size_t index, std::int32_t step) {
  const plan::Schedule& steps = schedule(ranks_[index], index);
  const Step::Kind kind = steps.step(step).kind;
  if (plan::is_local(kind)) return perform(index, step);
  if (kind == Step::Kind::kSend) return post_sends(index, steps.queue_of(step));
  receive(index, steps.queue_of(step));
}

void PlanWalk::perform(std::size_t index, std::int32_t step) {
  const Step& now = schedule(ranks_[index], index).step(step);
  if (now.kind == Step::Kind::kFinish || now.into.bytes == 0) return complete(index, step);
  const int rank = symmetry_.ranks()[index];
  start(now.kind == Step::Kind::kCopy ? fabric_.copy(rank, now.into.bytes)
                                      : fabric_.reduction(rank, now.into.bytes),
        {.rank = index, .step = step});
}

/// Messages are posted in order: a ready one waits for those before it on its link.
void PlanWalk::post_sends(std::size_t index, std::size_t queue) {
  Rank& rank = ranks_[index];
  QueueProgress& progress = rank.queues[queue];
  const plan::Schedule& steps = schedule(rank, index);
  const auto& sends = steps.queues()[queue].sends;
  if (sends.empty()) return;
  Channel& out = channels_[progress.out];
  const plan::Schedule& theirs = schedules_[rank.plan][out.to];
  const auto& receives = theirs.queues()[out.to_queue[rank.plan]].receives;
  for (; progress.posted < sends.size(); ++progress.posted) {
    const std::int32_t step = sends[progress.posted];
    if (rank.waits[static_cast<std::size_t>(step)] > 0) break;
    const Step::Kind received = theirs.step(receives.at(progress.posted)).kind;
    out.posted.push_back({.rank = index,
                          .step = step,
                          .bytes = steps.step(step).from.bytes,
                          .reduces = received != Step::Kind::kReceive});
  }
  send_next(progress.out);
}

void PlanWalk::receive(std::size_t index, std::size_t queue) {
  Rank& rank = ranks_[index];
  QueueProgress& progress = rank.queues[queue];
  const auto& receives = schedule(rank, index).queues()[queue].receives;
  if (receives.empty()) return;
  std::size_t& arrived = channels_[progress.in].arrived;
  for (; arrived > 0 && progress.received < receives.size(); ++progress.received, --arrived) {
    const std::int32_t step = receives[progress.received];
    if (rank.waits[static_cast<std::size_t>(step)] > 0) return;
    complete(index, step);
  }
}

// --- time

void PlanWalk::send_next(std::size_t channel) {
  Channel& out = channels_[channel];
  if (out.is_sending || out.posted.empty()) return;
  out.is_sending = true;
  const Message message = out.posted.front();
  out.posted.pop_front();
  start(
      fabric_.message(out.from_rank, out.to_rank, out.inside_host, message.bytes, message.reduces),
      {.channel = channel, .rank = message.rank, .step = message.step});
}

void PlanWalk::start(const Activity& activity, const Doing& doing) {
  activities_.push_back(activity);
  doing_.push_back(doing);
  shares_changed_ = true;
}

double PlanWalk::until_next_event() const {
  double seconds = arrivals_.empty() ? kNever : arrivals_.top().first - now_;
  for (const Activity& activity : activities_) {
    seconds = std::min(seconds, activity.left / activity.rate);
  }
  return std::max(std::min(seconds, capacities_->until_fall()), 0.0);
}

void PlanWalk::advance(double seconds) {
  now_ += seconds;
  for (Activity& activity : activities_) {
    activity.left -= activity.rate * seconds;
    for (const Use& use : activity.used()) {
      used_[static_cast<std::size_t>(use.resource)] += use.per_byte * activity.rate * seconds;
    }
  }
  shares_changed_ = capacities_->pass(seconds);
}

void PlanWalk::end_activities() {
  for (std::size_t i = 0; i < activities_.size();) {
    if (activities_[i].left > kNoBytes) {
      ++i;
      continue;
    }
    const Doing done = doing_[i];
    activities_[i] = activities_.back();
    activities_.pop_back();
    doing_[i] = doing_.back();
    doing_.pop_back();
    shares_changed_ = true;
    complete(done.rank, done.step);
    if (done.channel == Doing::kLocal) continue;
    Channel& out = channels_[done.channel];
    out.is_sending = false;
    arrivals_.emplace(now_ + fabric_.latency(out.inside_host), done.channel);
    send_next(done.channel);
  }
}

void PlanWalk::take_arrivals() {
  while (!arrivals_.empty() && arrivals_.top().first <= now_ + kNoTime) {
    Channel& in = channels_[arrivals_.top().second];
    arrivals_.pop();
    ++in.arrived;
    const std::size_t queue = in.to_queue[ranks_[in.to].plan];
    if (queue != Channel::kNone) receive(in.to, queue);
  }
}

}  // namespace elastic::model
