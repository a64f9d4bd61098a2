// Recovery: a server that is started again resumes the job of its members.
//
// The members continue to train meanwhile, in the last view that was announced. The server decides
// nothing until it knows which view that is and which of its members are back.
#include <algorithm>
#include <chrono>
#include <utility>

#include "rendezvous/membership/state.hpp"

namespace elastic::rendezvous {

namespace {

/// Generations to skip without a journal: views that no returning member has seen may have used
/// them.
constexpr std::uint64_t kForgottenGenerations = 1U << 16;
/// Bits for the numbers of rounds in one run of the server. The numbers must differ from those of
/// an earlier run, because its reports may still be on their way.
constexpr int kRoundBits = 20;
/// Time for a hundred workers to connect, authenticate and register at a server on a slow
/// processor.
constexpr Milliseconds kReturnOfHundred{100};

}  // namespace

void Membership::State::raise_floor(std::uint64_t floor) {
  floor_ = std::max(floor_, floor);
  rounds_ = std::max(rounds_, floor_ << kRoundBits);
}

/// A worker with a view registers at a server that has none: the journal is lost. Recovers from the
/// members.
void Membership::State::start_recovery() {
  recovery_.emplace(Recovery{});
  for (const auto& entry : workers_) welcome(entry.first);  // these are joiners after all
}

/// Resumes the job once it is known in which view.
///
/// - A view is adoptable, and either all its members are back or `return_window` has passed since
///   the first one came back: adopt it. If the members that are back report broken links to all
///   missing members, `suspect_return_window` applies instead.
/// - That window has passed, and no worker has a view, but one was a member: no member is left, and
///   the job forms again.
/// - Only joiners are there: the members may train on where they do not reach this server. The
/// job
///   forms again after `start_timeout`.
/// - No view is adoptable within `start_timeout`: the job fails.
///
/// Cost: linear in the number of members, but constant while members are missing and not late, so
/// that the return of all is not quadratic.
bool Membership::State::try_recover() {
  if (!any_worker_of_the_job()) {
    recovery_->since.reset();
    return begin_again_with_joiners();
  }
  if (!recovery_->since) recovery_->since = now_;
  bool late = now_ >= *recovery_->since + return_window();
  const View* const newest = newest_known();
  const bool waits =
      newest != nullptr ? workers_.size() < newest->members.size() : is_awaited(recovery_->highest);
  if (!late && waits && recovery_->suspicions.empty()) return false;
  const View* view = adoptable();
  const bool return_unlikely = view != nullptr && missing_are_suspected(*view);
  if (return_unlikely && now_ >= *recovery_->since + options_.suspect_return_window) late = true;
  if (view != nullptr && (late || count_back(*view, false) == view->members.size())) {
    adopt(*view);
    return true;
  }
  if (!late) return false;
  if (!any_worker_has_view()) {
    begin_again("none of the members is left");
    return true;
  }
  if (now_ >= *first_registered_ + options_.start_timeout) {
    fail(
        "no view is known to a majority of its members, and the journal has none as new: some of "
        "the members are not back. To go on with those that are, start the server with "
        "--adopt-any");
  }
  return false;
}

bool Membership::State::begin_again_with_joiners() {
  if (workers_.empty()) return false;
  if (now_ >= *first_registered_ + options_.start_timeout) {
    begin_again("none of the members has come back");
    return true;
  }
  if (!std::exchange(recovery_->told_of_joiners, true)) {
    const auto limit = std::chrono::duration_cast<std::chrono::seconds>(options_.start_timeout);
    log_reason("new workers wait for the members of the job to come back, for at most " +
               std::to_string(limit.count()) + " s: then the job begins again");
  }
  return false;
}

void Membership::State::begin_again(const std::string& why) {
  log_reason(why + ": the job begins again");
  recovery_.reset();
  forget_requests();
}

/// The time for members to come back: a server needs some for each of many.
Milliseconds Membership::State::return_window() const {
  const View* const newest = recovery_ ? newest_known() : &view_;
  const std::size_t members = newest != nullptr ? newest->members.size() : workers_.size();
  return options_.return_window + static_cast<std::int64_t>(members / 100) * kReturnOfHundred;
}

/// Notes the generation of a worker that has come back, and asks the worker for its view if that is
/// not known.
void Membership::State::note_reported_view(const std::string& incarnation) {
  Recovery& recovery = *recovery_;
  const std::uint64_t generation = workers_.at(incarnation).registration.generation;
  recovery.highest = std::max(recovery.highest, generation);
  // A request on the connection before is lost.
  std::erase_if(recovery.asked, [&](const auto& one) { return one.second == incarnation; });
  const bool in_journal = recovery.journaled && generation <= recovery.journaled->generation;
  if (!in_journal && generation != 0 && known_view(generation) == nullptr) {
    ask_for_view(generation, incarnation);
  }
}

/// One worker is asked at a time, and another when that one is gone.
void Membership::State::ask_for_view(std::uint64_t generation, const std::string& incarnation) {
  std::string& asked = recovery_->asked[generation];
  if (workers_.contains(asked)) return;
  asked = incarnation;
  send(incarnation, ViewRequest{generation});
}

/// Whether a worker is yet to tell the view of this generation.
bool Membership::State::is_awaited(std::uint64_t generation) const {
  const auto asked = recovery_->asked.find(generation);
  return asked != recovery_->asked.end() && workers_.contains(asked->second);
}

/// The view of a generation, if the journal or a worker has told it; otherwise null.
const View* Membership::State::known_view(std::uint64_t generation) const {
  const auto& journaled = recovery_->journaled;
  if (journaled && journaled->generation == generation) return &*journaled;
  const auto told = recovery_->told.find(generation);
  return told == recovery_->told.end() ? nullptr : told->second.get();
}

/// The view of the highest generation that the journal has or a worker has reported; null while
/// that is unknown.
const View* Membership::State::newest_known() const {
  const auto& journaled = recovery_->journaled;
  if (journaled && recovery_->highest <= journaled->generation) return &*journaled;
  return known_view(recovery_->highest);
}

/// The view that the job is in; null if that is unknown. The journaled view is the one, unless a
/// worker reports a later generation, which means that the journal is out of date. Then it is the
/// highest view that a majority of its members is in, or with `adopt_any` the highest view of all.
const View* Membership::State::adoptable() {
  std::map<std::uint64_t, std::string> reported;  // with a worker that has the view
  for (const auto& [incarnation, worker] : workers_) {
    const std::uint64_t generation = worker.registration.generation;
    if (generation != 0) reported.try_emplace(generation, incarnation);
  }
  const auto& journaled = recovery_->journaled;
  if (journaled && (reported.empty() || reported.rbegin()->first <= journaled->generation)) {
    return count_back(*journaled, false) > 0 ? &*journaled : nullptr;
  }
  for (auto candidate = reported.rbegin(); candidate != reported.rend(); ++candidate) {
    const View* const view = known_view(candidate->first);
    if (view == nullptr) {
      ask_for_view(candidate->first, candidate->second);
      return nullptr;
    }
    if (options_.adopt_any || 2 * count_back(*view, true) > view->members.size()) return view;
  }
  return nullptr;
}

/// The number of members of `view` that have registered again. With `in_this_view` only those count
/// whose latest view is `view`.
std::size_t Membership::State::count_back(const View& view, bool in_this_view) const {
  const auto is_back = [&](const Member& member) {
    const auto found = workers_.find(member.incarnation);
    if (found == workers_.end()) return false;
    return !in_this_view || found->second.registration.generation == view.generation;
  };
  return static_cast<std::size_t>(std::count_if(view.members.begin(), view.members.end(), is_back));
}

bool Membership::State::missing_are_suspected(const View& view) const {
  return std::all_of(view.members.begin(), view.members.end(), [&](const Member& member) {
    if (workers_.contains(member.incarnation)) return true;
    const auto& kept = recovery_->suspicions;
    return std::any_of(kept.begin(), kept.end(), [&](const auto& suspicion) {
      return suspicion.second.incarnation == member.incarnation &&
             suspicion.second.generation == view.generation;
    });
  });
}

bool Membership::State::any_worker_has_view() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& entry) { return entry.second.registration.generation != 0; });
}

/// Also one that was a member and is none any more: the others have waited for as long as it has.
bool Membership::State::any_worker_of_the_job() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& entry) {
    const Register& its = entry.second.registration;
    return its.generation != 0 || its.last_generation.value_or(0) != 0;
  });
}

/// Resumes the job in `view`. Without a journal that has the highest generation, the server skips
/// generations and makes that durable first. It causes a view change if members are missing,
/// settles every worker that is present, and repeats suspicions that came too early. `view` is
/// passed by value because it may belong to a worker that goes meanwhile.
void Membership::State::adopt(View view) {
  std::uint64_t highest = view.generation;
  for (const auto& entry : workers_) {
    highest = std::max(highest, entry.second.registration.generation);
  }
  const auto& journaled = recovery_->journaled;
  const bool from_journal = journaled && highest <= journaled->generation;
  if (!from_journal) raise_floor(highest + kForgottenGenerations);
  auto suspicions = std::move(recovery_->suspicions);
  recovery_.reset();
  enter(std::move(view));
  commits_ = std::max(commits_, view_.commits);
  for (const Member& member : view_.members) synced_before_ = synced_before_ || member.synced;
  if (view_.below_minimum) below_since_ = now_;
  log_reason("view " + std::to_string(view_.generation) + " is taken up again, as " +
             (from_journal ? "the journal has it" : "its members report it"));
  if (!from_journal) {
    out_.actions.push_back(ReserveGenerations{floor_});
    out_.actions.push_back(Journal{view_});
  }
  for (const Member& member : view_.members) {
    if (workers_.contains(member.incarnation)) continue;
    causes_.push_back(describe(member.incarnation) + " did not come back to the server");
    note_silent(member, "it did not come back to the server");
  }
  std::vector<std::string> present;
  for (const auto& entry : workers_) present.push_back(entry.first);
  for (const std::string& worker : present) bring_up_to_date(worker);
  compare_layouts();
  for (auto& [from, suspicion] : suspicions) {
    if (!workers_.contains(from)) continue;
    // If the earlier server ended before it announced this view to the suspected member, that
    // member could not make the link, and is not to blame.
    suspicion.never_linked = suspicion.never_linked && was_announced_to(suspicion.incarnation);
    on_message(from, suspicion);
  }
}

/// Whether the present view had been announced to the worker before it registered here.
bool Membership::State::was_announced_to(const std::string& incarnation) const {
  const auto found = workers_.find(incarnation);
  if (found == workers_.end()) return false;
  return found->second.registration.generation == view_.generation;
}

/// Brings a worker that has registered to the present view.
///
/// - A worker that is no member, but has a view: it was evicted, and is told so.
/// - A member that missed the last announcement is sent it again.
/// - A member that comes back during a view change may have lost messages in both directions. The
///   server freezes it again, within the round if that expects it, and in a new round otherwise.
void Membership::State::bring_up_to_date(const std::string& incarnation) {
  const Register& its = workers_.at(incarnation).registration;
  const std::uint64_t generation = its.generation;
  if (!is_member(incarnation)) {
    if (generation != 0) evict(incarnation, "the job went on without it");
    return;
  }
  if (generation > view_.generation) {
    return evict(incarnation, "it is in view " + std::to_string(generation) +
                                  ", which the other members do not know");
  }
  if (generation < view_.generation) send(incarnation, announcement_of(view_));
  const bool in_round = generation == view_.generation && its.in_round;
  const bool expected = round_ && round_->expected.contains(incarnation);
  // If the present round does not expect the member, a new round includes it. Otherwise the next
  // view would lack it: it would be connected like a joiner, but with a state of its own.
  const bool immediate = round_ && !round_->deferred();
  if (!in_round && !expected && !immediate) return;
  causes_.push_back(describe(incarnation) + " came back in the middle of a view change");
  if (immediate && expected) {
    // Its report may be lost. The reports of the others stay valid: they are binding.
    round_->reports.erase(incarnation);
    return send(incarnation, Freeze{view_.generation, round_->number, 0, causes_.back()});
  }
  round_wanted_ = true;
  if (immediate) start_round(0, causes_.back());
}

}  // namespace elastic::rendezvous
