#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace elastic::rendezvous {

/// Who has been silent for too long. The limit grows with how late heartbeats in general, and the
/// server's own ticks, have come recently, so that a loaded machine gives nobody up falsely. Nor is
/// anybody silent who is known to do its work (`lived`).
///
/// Where everybody has been silent for half of the limit, nobody is: it is the server then that
/// hears nothing, and all get their time again once one of them is heard. That one was late by as
/// much; the others may be later still, since TCP tries again at growing intervals.
///
/// Belongs to the thread of its Membership.
class Liveness {
 public:
  Liveness(Milliseconds period, Milliseconds evict_after);

  void watch(const std::string& incarnation, TimePoint now);
  void heard(const std::string& incarnation, TimePoint now);
  /// Something else than its own word tells that it was alive at `at`.
  void lived(const std::string& incarnation, TimePoint at);
  void forget(const std::string& incarnation);

  /// A tick that was due at `due` comes at `now`. False when the server itself has been away for so
  /// long that silence means nothing: all clocks start again.
  bool tick(TimePoint due, TimePoint now);

  struct Silent {
    std::string incarnation;
    Milliseconds silence;  ///< since its own last word
  };
  std::vector<Silent> silent(TimePoint now) const;

  /// Silence that is allowed beyond `evict_after`.
  Duration slack(TimePoint now) const;
  /// When somebody is given up if nothing is heard; TimePoint::max() for never.
  TimePoint deadline(TimePoint now) const;
  Duration age(const std::string& incarnation, TimePoint now) const;

 private:
  struct Signs {
    TimePoint heard;  ///< its own last word
    TimePoint lived;  ///< the last that is known of it, `heard` or later
  };

  /// Silence that is allowed.
  Duration limit(TimePoint now) const;
  bool deaf(TimePoint now) const;
  void restart(TimePoint now);
  Duration recent_lateness(TimePoint now) const;
  void note_lateness(Duration lateness, TimePoint now);

  Duration period_;
  Duration evict_after_;
  std::map<std::string, Signs> signs_;
  Duration peak_{0};
  TimePoint peak_at_{};
};

}  // namespace elastic::rendezvous
