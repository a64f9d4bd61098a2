#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

struct QuarantineOptions {
  Milliseconds first_pause{60000};      ///< 0: no host is ever in quarantine
  Milliseconds longest_pause{1800000};  ///< to which it doubles
  Milliseconds half_life{600000};       ///< of a host's score
  Milliseconds proven{60000};  ///< the failure of one that was a member for so long does not count
};

/// Which hosts get no workers for a while, because those that were started there failed.
///
/// Each failure adds 1 to its host's score, which halves in every half-life. The third in a short
/// time begins a pause, and so does each further one after it, twice as long. Failures during a
/// pause are of workers that were started before it, and do not count; nor does the score fall
/// meanwhile, since the host has not proven itself. One at least of the connected hosts is not in
/// quarantine.
///
/// Without I/O. Owned by the server's thread.
class Quarantine {
 public:
  using Hosts = std::set<std::string>;
  struct Pause {
    std::string why;  ///< for people
    TimePoint ends;
  };
  struct Change {
    std::string host;
    Milliseconds pause;  ///< that begins; 0: one ends
    std::string why;
  };

  explicit Quarantine(QuarantineOptions options) : options_(options) {}

  /// A view holds from now on.
  void note_view(const View& view, TimePoint now);
  /// A launcher is new: workers with labels of its number were another's.
  void note_launcher(int number);
  /// Whether the worker of this label, which has ended, was ever a member.
  bool was_member(const std::string& label) const { return members_.contains(label); }
  /// The worker of this label has ended without a failure of its own.
  void worker_ended(const std::string& label) { members_.erase(label); }
  /// It failed: it did not start, or ended by itself. `how` as in "exited with code 1".
  void worker_failed(const std::string& host, const std::string& label, const std::string& how,
                     TimePoint now);
  /// A member of the view was given up. Those of one host and view are one failure: that of the
  /// host, or of the way to it.
  void evicted(const std::string& host, std::uint64_t generation, const std::string& what,
               TimePoint now);

  /// The pauses that begin or end now. `connected`: hosts whose launchers take workers.
  std::vector<Change> update(const Hosts& connected, TimePoint now);
  /// When the next pause ends; TimePoint::max() for never.
  TimePoint next_end() const;
  /// Forgets a host's failures. \returns whether there were any.
  bool forget(const std::string& host) { return hosts_.erase(host) > 0; }
  /// None: the host is not in quarantine.
  std::optional<Pause> pause_of(const std::string& host) const;

 private:
  struct Host {
    double score = 0;  ///< as of `scored`
    TimePoint scored;
    std::string latest;            ///< failure, for people
    std::uint64_t generation = 0;  ///< of the view in which members were last given up
    bool failed = false;           ///< since the last update
    std::optional<Pause> pause;
  };
  struct Since {
    std::string incarnation;
    TimePoint at;
  };

  void count(Host& host, const std::string& what, TimePoint now);
  double score_of(const Host& host, TimePoint now) const;
  Milliseconds pause_after(int failures) const;
  bool another_takes_workers(const std::string& host, const Hosts& connected) const;
  void end(Host& host, TimePoint now);
  void release_one(const Hosts& connected, TimePoint now, std::vector<Change>& changes);

  QuarantineOptions options_;
  std::map<std::string, Host> hosts_;
  std::map<std::string, Since> members_;  ///< by label: since when it has been a member
};

}  // namespace elastic::rendezvous
