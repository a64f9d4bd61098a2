// Requests on control connections, of people and of launchers.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/overloaded.hpp"
#include "base/wall_clock.hpp"
#include "rendezvous/protocol/slot_label.hpp"
#include "rendezvous/server/job.hpp"

namespace elastic::rendezvous {

namespace {

/// Time for the workers of a host that is drained.
constexpr Milliseconds kUsualDeadline{120000};
/// Workers that replace those of a drained host are waited for so long at most.
constexpr Milliseconds kLongestBoot{60000};
/// As far as deadlines of an earlier server are believed: clocks of machines differ.
constexpr Milliseconds kLongestDeadline{1'000'000'000};

Done outcome(const Decision& decision) {
  return {decision.ok, decision.answer.empty() ? decision.reason : decision.answer};
}

}  // namespace

void Job::request(const Peer& peer, const Message& request, bool launcher) {
  // The state of the job may be told at any time: it promises nothing.
  const bool may_overtake = !launcher && std::holds_alternative<StatusRequest>(request);
  if (blocked() && !may_overtake) return requests_.push_back({peer, request, launcher});
  Message its = answer(peer, request, launcher);
  if (may_overtake) return peer->send(its);
  replies_.emplace_back(peer, std::move(its));
  reply();
}

/// Not while the journal has not kept what the answers promise.
void Job::reply() {
  if (blocked()) return;
  for (const auto& [peer, message] : std::exchange(replies_, {})) {
    peer->send(abandoned_.empty() ? message : Message(Done{false, abandoned_}));
  }
}

Message Job::answer(const Peer& peer, const Message& request, bool launcher) {
  return std::visit(
      Overloaded{[&](const StatusRequest&) -> Message { return status(); },
                 [&](const RemoveRequest& it) -> Message { return remove(it, launcher); },
                 [&](const StopRequest&) -> Message {
                   return outcome(decide(StopJob{!launchers_.empty()}));
                 },
                 [&](const AddRequest& wanted) -> Message { return add(wanted); },
                 [&](const LimitRequest& it) -> Message { return limit(it, launcher); },
                 [&](const PardonRequest& it) -> Message { return pardon(it); },
                 [&](const DumpRequest& it) -> Message { return dump(it); },
                 [&](const WorkerEnded& it) -> Message { return worker_ended(peer, it); },
                 [&](const ExpectRequest& it) -> Message {
                   return outcome(decide(ExpectWorkers{it.workers}));
                 },
                 [&](const auto&) -> Message {
                   return Done{false, "a control connection cannot ask for '" +
                                          std::string(type_of(request)) + "'"};
                 }},
      request);
}

Done Job::dump(const DumpRequest& request) {
  if (workers_.empty()) {
    return {false, "no worker is connected that could write its latest operations"};
  }
  const Frame frame{Message(request)};
  for (const auto& [incarnation, peer] : workers_) peer->send(frame);
  return {true, "asked " + std::to_string(workers_.size()) +
                    " workers for their latest operations; each says in its log where it has "
                    "written them"};
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
  if (phase_ == Phase::kRecovering) {
    return {false,
            "cannot add workers yet: the server has just been started, and the members come back "
            "to it; try again in some seconds"};
  }
  if (const Status room = room_for(""); !room.ok()) {
    return {false, "no worker can join now: " + room.message()};
  }
  if (phase_ != Phase::kForming && !joinable_) {
    return {false,
            "no worker can join: no member is in elastic::run, so the program does not use it, or "
            "has not come to it yet"};
  }
  const StatusReply now = status();
  std::int64_t there = static_cast<std::int64_t>(workers_.size());
  if (phase_ == Phase::kForming) there = std::max<std::int64_t>(there, now.initial_np.value_or(0));
  std::int64_t count = request.count;
  if (request.or_fewer) {
    count = std::min(count, launchers_.room());
    if (now.max_np > 0) count = std::min(count, now.max_np - there);
    if (count < 1) return {true, "there is no room for more workers"};
  }
  if (now.max_np > 0 && there + count > now.max_np && !request.replaces) {
    return {false, "cannot add " + std::to_string(count) + " workers: " + std::to_string(there) +
                       " are there or on their way, and the job takes at most " +
                       std::to_string(now.max_np) + " (--max-np)"};
  }
  if (const Status placed = place(static_cast<int>(count)); !placed.ok()) {
    return {false, placed.message()};
  }
  return {true, "the launcher is to start " + std::to_string(count) + " more"};
}

Status Job::place(int count) {
  const auto placed = launchers_.place(count);
  if (!placed.ok()) return placed.status();
  for (const auto& [peer, total] : placed.value()) peer->send(Spawn{total});
  note("workers_requested", std::to_string(count), {{"count", std::int64_t{count}}});
  return {};
}

Done Job::remove(const RemoveRequest& request, bool launcher) {
  int rank = request.rank;
  if (request.label) {
    const std::vector<Member>& members = membership_.view().members;
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const Member& its) { return its.label == *request.label; });
    // A launcher asks until its worker has ended: that may be about to join, or have left.
    if (found == members.end()) return {launcher, "no member has the label " + *request.label};
    rank = static_cast<int>(found - members.begin());
  }
  if (!launcher && rank >= 0) {
    const Status may = may_lose(static_cast<std::size_t>(rank));
    if (!may.ok()) return {false, may.message()};
  }
  return outcome(decide(RemoveWorker{rank}));
}

/// The members, with those whose removal is asked for.
std::vector<PlacedMember> Job::placed_members() const {
  std::vector<PlacedMember> members;
  for (const Member& its : membership_.view().members) {
    const auto slot = parse_slot_label(its.label);
    members.push_back({slot ? slot->launcher : -1, membership_.leaves(its.incarnation)});
  }
  return members;
}

/// A host whose workers are needed stays, as its single workers do. Not where its machine ends.
/// Workers that are to leave for earlier requests are not counted as left, although they may be
/// members until a step boundary.
Status Job::may_lose(const std::string& host) const {
  std::vector<WorkerPlace> places = launchers_.places();
  const std::vector<PlacedMember> members = placed_members();
  const RemainingWorkers before = remaining_workers(members, places, joinable_);
  const std::vector<int> drained = launchers_.numbers_of(host);
  for (WorkerPlace& its : places) {
    if (std::ranges::find(drained, its.launcher) != drained.end()) its.slots = 0;
  }
  const RemainingWorkers after = remaining_workers(members, places, joinable_);
  const int min_np = status().min_np;
  if (!runs() || after.surplus == before.surplus || after.count >= min_np) return {};
  return Status(Code::kRefused, "cannot drain host " + launchers_.host_named(host) + ": " +
                                    std::to_string(after.count) +
                                    " workers would be left, min_np is " + std::to_string(min_np) +
                                    leaving_text(before));
}

/// The same for a single member, which nothing replaces. Membership does not know of workers that
/// are to leave because their host is drained.
Status Job::may_lose(std::size_t rank) const {
  const std::vector<WorkerPlace> places = launchers_.places();
  std::vector<PlacedMember> members = placed_members();
  const RemainingWorkers before = remaining_workers(members, places, joinable_);
  if (!runs() || before.surplus == 0 || rank >= members.size()) return {};
  members[rank].leaves = true;
  const RemainingWorkers after = remaining_workers(members, places, joinable_);
  const int min_np = status().min_np;
  if (after.count_leaving() == before.count_leaving() || after.count >= min_np) return {};
  return Status(Code::kRefused, "cannot remove rank " + std::to_string(rank) + ": " +
                                    std::to_string(after.count) +
                                    " workers would be left, min_np is " + std::to_string(min_np) +
                                    leaving_text(before));
}

/// The request with the number of the launcher that a person means. kRefused: several are called
/// so.
Result<LimitRequest> Job::of_one_launcher(LimitRequest request) const {
  const std::vector<int> named = launchers_.connected_of(request.host);
  if (named.size() > 1) {
    return Status(Code::kRefused, fmt::format("{} hosts are called {}: drain one by its number: {}",
                                              named.size(), request.host, fmt::join(named, ", ")));
  }
  if (!named.empty()) request.host = std::to_string(named.front());
  return request;
}

/// Workers that the host loses are started elsewhere first, as far as there is room, and leave when
/// the others have come: the job is hardly smaller meanwhile.
Done Job::limit(LimitRequest request, bool launcher) {
  if (request.slots < 0) return {false, "a host cannot have fewer than 0 slots"};
  if (phase_ == Phase::kDone || phase_ == Phase::kFailed) return {false, "the job is over"};
  if (!launcher) {
    auto of_one = of_one_launcher(std::move(request));
    if (!of_one.ok()) return {false, of_one.status().message()};
    request = std::move(of_one).value();
    if (const Status may = may_lose(request.host); !may.ok()) return {false, may.message()};
  }
  std::int64_t leaving = 0;
  bool known = false;
  for (const auto& [peer, workers] : launchers_.limit(request.host, request.slots)) {
    known = true;
    leaving += std::max<std::int64_t>(0, workers - request.slots);
  }
  if (!known) {
    const std::string hosts = launchers_.hosts();
    const std::string others =
        " is connected; nor is any other: after a change of server they come "
        "back within some seconds";
    return {false, "no launcher of the host " + request.host +
                       (hosts.empty() ? others : " is connected; connected are: " + hosts)};
  }
  const std::string name = launchers_.host_named(request.host);
  note("host_limited", name + " to " + std::to_string(request.slots) + " slots",
       {{"host", name}, {"slots", std::int64_t{request.slots}}});
  std::int64_t moved = 0;
  if (runs() && joinable_) moved = std::min(leaving, launchers_.room());
  if (moved > 0 && !place(static_cast<int>(moved)).ok()) moved = 0;
  const Milliseconds deadline(request.deadline_ms.value_or(kUsualDeadline.count()));
  const Milliseconds longest_wait =
      moved > 0 ? std::min(deadline / 2, kLongestBoot) : Milliseconds(0);
  forget_limits_before(request.host);
  wait_for_limit(request, moved, longest_wait, deadline);
  if (moved > 0) keep_requests();
  carry_out_limits();
  const bool shared = launchers_.connected_on(name).size() > 1;
  const std::string number = shared ? " (number " + request.host + ")" : "";
  return {true, std::to_string(leaving) + " workers leave the host " + name + number +
                    " at a step boundary" +
                    (moved > 0 ? ", after " + std::to_string(moved) + " have come elsewhere" : "")};
}

/// The times in the journal are those of the wall clock, read once: what is kept is not to differ
/// from one attempt to keep it to the next.
void Job::wait_for_limit(LimitRequest request, std::int64_t replacements, Duration due,
                         Duration ends) {
  const TimePoint now = Clock::now();
  const auto wall = [today = milliseconds_since_1970()](Duration left) {
    return today + std::chrono::duration_cast<Milliseconds>(left).count();
  };
  PendingRequests::Limit kept{request.host, request.slots, 0,
                              wall(due),    wall(ends),    request.deadline_ms.has_value()};
  limits_.push_back({std::move(request), replacements, now + due, now + ends, std::move(kept)});
}

/// A new worker counts for one limit, wherever it came from, and once.
void Job::note_replacement(const std::string& incarnation) {
  const auto waits =
      std::ranges::find_if(limits_, [](const Limit& its) { return its.replacements > 0; });
  if (waits == limits_.end()) return replacements_.clear();
  if (!replacements_.insert(incarnation).second) return;
  --waits->replacements;
  carry_out_limits();
}

/// A host has one limit, the latest that its launcher was told.
void Job::forget_limits_before(const std::string& host) {
  const std::vector<int> launchers = launchers_.numbers_of(host);
  std::erase_if(limits_, [&](const Limit& its) {
    return its.told_once && launchers_.numbers_of(its.request.host) == launchers;
  });
}

/// Tells launchers of limits whose time has come. One that is away is told when it is back, and one
/// whose connection broke before it said that it knows is told again.
void Job::carry_out_limits() {
  const TimePoint now = Clock::now();
  TimePoint next = TimePoint::max();
  const auto told = std::erase_if(limits_, [&](Limit& limit) {
    const auto& [host, slots, deadline] = limit.request;
    if (limit.told_once && launchers_.have_heard_limit(host, slots)) return true;
    const auto launchers = launchers_.limit(host, slots);
    const bool waits = limit.replacements > 0 && now < limit.due;
    if (waits || (launchers.empty() && now < limit.ends)) {
      next = std::min(next, waits ? limit.due : limit.ends);
      return false;
    }
    std::optional<std::int64_t> left;
    if (deadline) {
      left = std::max<std::int64_t>(
          0, std::chrono::duration_cast<Milliseconds>(limit.ends - now).count());
    }
    for (const auto& [peer, workers] : launchers) {
      if (limit.told.insert(peer).second) peer->send(Limited{slots, left});
    }
    limit.told_once = true;
    next = std::min(next, limit.ends);
    return now >= limit.ends;
  });
  if (told > 0 && !pending_.limits.empty()) keep_requests();
  if (next == TimePoint::max()) return;
  limit_due_.expires_at(next);
  limit_due_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    if (const auto self = weak.lock(); self && !error) self->carry_out_limits();
  });
}

/// Limits that wait are in the journal: what was promised is done by the next server.
void Job::keep_requests() {
  const bool is_next = std::ranges::any_of(actions_, [](const Action& action) {
    return std::holds_alternative<JournalRequests>(action);
  });
  if (!is_next) actions_.emplace_back(JournalRequests{pending_});
  if (!blocked()) carry_out();
}

std::vector<PendingRequests::Limit> Job::limits_to_keep() const {
  std::vector<PendingRequests::Limit> kept;
  for (const Limit& its : limits_) {
    kept.push_back(its.kept);
    kept.back().replacements = its.replacements;
  }
  return kept;
}

/// Takes up the limits of the server before this one. They are carried out when launchers come
/// back.
void Job::restore(const std::vector<PendingRequests::Limit>& limits) {
  const std::int64_t today = milliseconds_since_1970();
  for (const auto& its : limits) {
    const Milliseconds left(std::max<std::int64_t>(0, its.ends - today));
    const Milliseconds wait(std::max<std::int64_t>(0, its.due - today));
    LimitRequest request{its.host, its.slots, {}};
    if (its.ends_given) request.deadline_ms = left.count();
    wait_for_limit(std::move(request), its.replacements, std::min(wait, kLongestBoot),
                   std::min(left, kLongestDeadline));
  }
}

}  // namespace elastic::rendezvous
