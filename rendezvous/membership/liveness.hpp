#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"

namespace elastic::rendezvous {

/// The failure detector: finds members that have been silent for too long.
///
/// The limit is `evict_after` plus a slack. The slack follows the recent lateness of all heartbeats
/// and of the server's own ticks, so that no member is given up falsely on a loaded machine; the
/// whole limit is at most ten times `evict_after`. A member that is known to make progress
/// (`lived`) is not silent either.
///
/// If every member has been silent for half of the limit, the server takes itself to be the cause,
/// and gives up no member, for at most 120 times `evict_after`. Once it hears one of them, or a new
/// one, the time of all members starts again. A single member without which the job's state would
/// be lost is borne as long (`borne_until`). The lateness of that one member is known; the others
/// may be later still, because TCP retransmits at growing intervals.
///
/// Cost: a message of a member is noted in constant time; the rest takes a look at every member.
/// Not thread-safe: belongs to the thread of its Membership.
class Liveness {
 public:
  Liveness(Milliseconds period, Milliseconds evict_after);

  /// Changes the period and the limit; the time of all members starts again.
  void set_pace(Milliseconds period, Milliseconds evict_after, TimePoint now);

  void watch(const std::string& incarnation, TimePoint now);
  void heard(const std::string& incarnation, TimePoint now);
  /// Evidence other than its own message shows that it was alive at `at`.
  void lived(const std::string& incarnation, TimePoint at);
  void forget(const std::string& incarnation);

  /// Handles a tick that was due at `due` and comes at `now`. False if the server itself was away
  /// for so long that silence proves nothing: then the time of all members starts again.
  bool tick(TimePoint due, TimePoint now);

  struct Silent {
    std::string incarnation;
    Milliseconds silence;  ///< since its own last message
  };
  std::vector<Silent> silent(TimePoint now) const;
  /// Whether no member was heard for longer than silence is allowed.
  bool all_silent(TimePoint now) const { return !signs_.empty() && now - newest_ >= limit(now); }
  /// The time of the member's own last message; TimePoint::min() where it is not watched.
  TimePoint heard_at(const std::string& incarnation) const;

  /// Whether its own last message, or the latest time from which silence counts, is no older than
  /// half of the silence that is allowed.
  bool answers(const std::string& incarnation, TimePoint now) const;
  /// When a member that is needed is given up if it stays silent: as late as if all were silent.
  TimePoint borne_until(const std::string& incarnation) const;

  /// The silence that is allowed beyond `evict_after`.
  Duration slack(TimePoint now) const;
  /// When the next member is given up if none is heard, or earlier; TimePoint::max() for never.
  TimePoint deadline(TimePoint now);
  Duration age(const std::string& incarnation, TimePoint now) const;

 private:
  struct Signs {
    TimePoint heard;  ///< its own last message, or the latest time from which silence counts
    TimePoint lived;  ///< the latest evidence of its life, `heard` or later
    TimePoint spoke;  ///< its own last message
  };

  /// The silence that is allowed: `evict_after` and the slack.
  Duration limit(TimePoint now) const;
  /// Whether the server has heard no member for half of the limit.
  bool hears_no_member(TimePoint now) const;
  void restart(TimePoint now);
  Duration recent_lateness(TimePoint now) const;
  void note_lateness(Duration lateness, TimePoint now);

  Duration period_;
  Duration evict_after_;
  std::unordered_map<std::string, Signs> signs_;
  TimePoint newest_ = TimePoint::min();  ///< the latest `heard` of all
  /// A lower bound of all `lived`. It is raised only when it makes a deadline pass.
  TimePoint oldest_ = TimePoint::min();
  Duration peak_{0};
  TimePoint peak_at_{};
};

}  // namespace elastic::rendezvous
