#include "rendezvous/membership/liveness.hpp"

#include <algorithm>

namespace elastic::rendezvous {
namespace {

constexpr Duration kMemory = std::chrono::seconds(10);
constexpr int kSlackPerLateness = 4;
constexpr int kLimitCap = 10;  // times evict_after
/// Times evict_after: the longest silence of all members for which the server takes itself to be
/// the cause.
constexpr int kLongestSilenceOfAll = 120;

}  // namespace

Liveness::Liveness(Milliseconds period, Milliseconds evict_after)
    : period_(period), evict_after_(evict_after) {}

void Liveness::set_pace(Milliseconds period, Milliseconds evict_after, TimePoint now) {
  period_ = period;
  evict_after_ = evict_after;
  restart(now);
}

void Liveness::watch(const std::string& incarnation, TimePoint now) {
  const bool heard_no_member = hears_no_member(now);
  // The new one was not late itself: the others are, by the time for which none was heard.
  if (heard_no_member) note_lateness(now - newest_ - period_, now);
  if (signs_.empty()) oldest_ = now;
  signs_[incarnation] = {now, now, now};
  newest_ = std::max(newest_, now);
  if (heard_no_member) restart(now);
}

void Liveness::heard(const std::string& incarnation, TimePoint now) {
  const auto found = signs_.find(incarnation);
  if (found == signs_.end()) return;
  const bool heard_no_member = hears_no_member(now);
  note_lateness(now - found->second.heard - period_, now);
  found->second = {now, now, now};
  newest_ = std::max(newest_, now);
  if (heard_no_member) restart(now);
}

void Liveness::lived(const std::string& incarnation, TimePoint at) {
  const auto found = signs_.find(incarnation);
  if (found != signs_.end()) found->second.lived = std::max(found->second.lived, at);
}

void Liveness::forget(const std::string& incarnation) {
  const auto found = signs_.find(incarnation);
  if (found == signs_.end()) return;
  const bool was_newest = found->second.heard == newest_;
  signs_.erase(found);
  if (!was_newest) return;
  newest_ = TimePoint::min();
  for (const auto& entry : signs_) newest_ = std::max(newest_, entry.second.heard);
}

bool Liveness::tick(TimePoint due, TimePoint now) {
  if (now <= due) return true;
  const bool away = now - due > limit(now) / 2;
  note_lateness(now - due, now);
  if (!away) return true;
  restart(now);
  return false;
}

void Liveness::restart(TimePoint now) {
  oldest_ = now;
  for (auto& entry : signs_) entry.second.heard = entry.second.lived = now;
  if (!signs_.empty()) newest_ = now;
}

std::vector<Liveness::Silent> Liveness::silent(TimePoint now) const {
  std::vector<Silent> result;
  if (hears_no_member(now)) return result;
  for (const auto& [incarnation, signs] : signs_) {
    if (now - signs.lived < limit(now)) continue;
    result.push_back({incarnation, std::chrono::duration_cast<Milliseconds>(now - signs.heard)});
  }
  return result;
}

bool Liveness::hears_no_member(TimePoint now) const {
  if (signs_.empty()) return false;
  return now - newest_ >= limit(now) / 2 && now - newest_ < kLongestSilenceOfAll * evict_after_;
}

Duration Liveness::limit(TimePoint now) const {
  return evict_after_ + slack(now);
}

Duration Liveness::slack(TimePoint now) const {
  return std::min(kSlackPerLateness * recent_lateness(now), (kLimitCap - 1) * evict_after_);
}

TimePoint Liveness::deadline(TimePoint now) {
  if (signs_.empty()) return TimePoint::max();
  if (hears_no_member(now)) return now + evict_after_;
  if (oldest_ + limit(now) <= now) {
    oldest_ = now;
    for (const auto& entry : signs_) oldest_ = std::min(oldest_, entry.second.lived);
  }
  return oldest_ + limit(now);
}

TimePoint Liveness::heard_at(const std::string& incarnation) const {
  const auto found = signs_.find(incarnation);
  return found == signs_.end() ? TimePoint::min() : found->second.spoke;
}

bool Liveness::answers(const std::string& incarnation, TimePoint now) const {
  const auto found = signs_.find(incarnation);
  return found != signs_.end() && now - found->second.heard < limit(now) / 2;
}

TimePoint Liveness::borne_until(const std::string& incarnation) const {
  const auto found = signs_.find(incarnation);
  if (found == signs_.end()) return TimePoint::min();
  return found->second.spoke + kLongestSilenceOfAll * evict_after_;
}

Duration Liveness::age(const std::string& incarnation, TimePoint now) const {
  const auto found = signs_.find(incarnation);
  return found == signs_.end() ? Duration(0) : now - found->second.heard;
}

Duration Liveness::recent_lateness(TimePoint now) const {
  const Duration age = now - peak_at_;
  if (peak_ == Duration(0) || age >= kMemory) return Duration(0);
  // In microseconds: the product of an hour and ten seconds in nanoseconds overflows 64 bits.
  const auto micros = [](Duration d) {
    return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
  };
  return std::chrono::microseconds(micros(peak_) * micros(kMemory - age) / micros(kMemory));
}

void Liveness::note_lateness(Duration lateness, TimePoint now) {
  if (lateness < recent_lateness(now) || lateness <= Duration(0)) return;
  peak_ = lateness;
  peak_at_ = now;
}

}  // namespace elastic::rendezvous
