#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "rendezvous/protocol/messages.hpp"
#include "rendezvous/server/remaining_workers.hpp"

namespace elastic::rendezvous {

/// The launchers of a job: where workers run, and where the next one is started. Without I/O: it
/// compares connections (`Peer`, a pointer) and does not use them.
///
/// Owned by the server's thread.
template <typename Peer>
class Launchers {
 public:
  /// A worker is to be started: tell the launcher `total` by Spawn.
  struct Placed {
    Peer peer;
    std::int64_t total = 0;
  };

  /// A launcher that has not enlisted yet. Until then it is taken for one without a limit.
  void connected(const Peer& peer) {
    peers_.push_back(peer);
    known_[""].peer = peer;
  }
  void disconnected(const Peer& peer) {
    std::erase(peers_, peer);
    for (auto& [id, launcher] : known_) {
      if (launcher.peer == peer) launcher.peer = Peer();
    }
    if (!known_[""].peer && !unenlisted().empty()) known_[""].peer = unenlisted().back();
  }

  /// \returns the launcher's number, the same for the same id.
  int enlist(const Peer& peer, const Enlist& its) {
    if (known_[""].peer == peer) known_[""].peer = Peer();
    const bool known = known_.contains(its.id);
    if (!known) forget_predecessor(its);
    Launcher& launcher = known_[its.id];
    if (!known) {
      launcher.number = its.host.empty() ? kWatches : free_number(its.number);
      launcher.wanted = its.spawned;  // a server before this one has asked for these
    }
    launcher.peer = peer;
    launcher.host = its.host;
    launcher.placed = its.number.has_value();
    launcher.slots = launcher.said_slots = its.slots;
    launcher.running = its.running;
    launcher.spawned = its.spawned;
    launcher.ends_silent = its.ends_silent.value_or(false);
    return launcher.number;
  }

  /// A connected launcher of another id with the same host's name; null: there is none, or both
  /// have places of their own in the order of ranks, as the tasks of a node under srun. Before it
  /// enlists.
  Peer namesake(const Enlist& its) const {
    for (const auto& [id, other] : known_) {
      if (id.empty() || id == its.id || !other.peer || other.host.empty()) continue;
      if (other.host == its.host && !(other.placed && its.number)) return other.peer;
    }
    return Peer();
  }

  bool knows(const std::string& id) const { return known_.contains(id); }
  bool has_enlisted(const Peer& peer) const {
    return std::any_of(known_.begin(), known_.end(), [&](const auto& one) {
      return !one.first.empty() && one.second.peer == peer;
    });
  }
  bool empty() const { return peers_.empty(); }
  const std::vector<Peer>& peers() const { return peers_; }
  /// How many workers were requested of the launcher behind `peer`, in all.
  std::int64_t wanted(const Peer& peer) const {
    const auto found = std::find_if(known_.begin(), known_.end(),
                                    [&](const auto& one) { return one.second.peer == peer; });
    return found == known_.end() ? 0 : found->second.wanted;
  }

  /// Finds room for `count` workers: each goes to the launcher that has the fewest, of those with a
  /// free slot. kUnavailable, and nothing is placed: there are fewer free slots.
  Result<std::vector<Placed>> place(int count) {
    std::map<std::string, Launcher> after = known_;
    std::set<std::string> chosen;
    for (int placed = 0; placed < count; ++placed) {
      const auto best = roomiest(after);
      if (best == after.end()) return Status(Code::kUnavailable, no_room(count));
      ++best->second.wanted;
      chosen.insert(best->first);
    }
    known_ = std::move(after);
    std::vector<Placed> result;
    for (const std::string& id : chosen) result.push_back({known_[id].peer, known_[id].wanted});
    return result;
  }

  /// The host of a launcher that has enlisted and runs workers.
  std::string host_of(const Peer& peer) const {
    for (const auto& [id, its] : known_) {
      if (its.peer == peer) return its.host;
    }
    return "";
  }

  /// The host of the launcher with this number, connected or not; empty: there is none.
  std::string host_of(int number) const {
    return host_where([number](const Launcher& its) { return its.number == number; });
  }
  /// The name of the host that `name` means, a name or a launcher's number; empty: there is none.
  std::string host_named(const std::string& name) const { return host_where(meaning(name)); }
  /// The launcher with this number, if it is connected and understands EndWorker; otherwise null.
  Peer that_ends(int number) const {
    for (const auto& [id, its] : known_) {
      if (its.number == number && its.ends_silent) return its.peer;
    }
    return Peer();
  }
  /// The launchers of `name`, a host's name or a launcher's number, in order. Several hosts may
  /// have one name, as containers do; a number is that of one launcher, also where a host is called
  /// so.
  std::vector<int> numbers_of(const std::string& name) const {
    return numbers_where(meaning(name));
  }
  /// Those of them that are connected.
  std::vector<int> connected_of(const std::string& name) const {
    return numbers_where(
        [is_meant = meaning(name)](const Launcher& its) { return its.peer && is_meant(its); });
  }
  /// The launchers that are connected and whose hosts have this name.
  std::vector<int> connected_on(const std::string& host) const {
    return numbers_where([&](const Launcher& its) { return its.peer && its.host == host; });
  }
  /// Those with a launcher that is connected and takes workers.
  std::set<std::string> hosts_with_slots() const {
    std::set<std::string> found;
    for (const auto& [id, its] : known_) {
      if (its.peer && !its.host.empty() && its.slots > 0) found.insert(its.host);
    }
    return found;
  }

  /// How many free slots there are.
  std::int64_t room() const {
    std::int64_t free = 0;
    for (const auto& [id, its] : known_) {
      if (id.empty() || its.host.empty() || !takes_workers(its)) continue;
      free += std::max<std::int64_t>(0, its.slots - its.busy());
    }
    return free;
  }

  /// While a host is in quarantine no worker is placed there. \returns its launchers.
  std::vector<Peer> set_quarantine(const std::string& host, bool on) {
    if (on) {
      quarantined_.insert(host);
    } else {
      quarantined_.erase(host);
    }
    std::vector<Peer> found;
    for (const auto& [id, its] : known_) {
      if (its.peer && its.host == host) found.push_back(its.peer);
    }
    return found;
  }

  /// Whether the launcher tells of this end of a worker for the first time: what it tells on a
  /// connection that is lost it may tell again.
  bool is_news(const Peer& peer, std::int64_t serial) {
    for (auto& [id, its] : known_) {
      if (its.peer != peer || serial <= its.ends) continue;
      its.ends = serial;
      return true;
    }
    return false;
  }

  /// The launchers of `host`, a name or a launcher's number, run at most `slots` workers each.
  /// \returns them, with how many workers each has.
  std::vector<std::pair<Peer, std::int64_t>> limit(const std::string& host, int slots) {
    std::vector<std::pair<Peer, std::int64_t>> found;
    const auto is_meant = meaning(host);
    for (auto& [id, its] : known_) {
      if (!its.peer || its.host.empty() || !is_meant(its)) continue;
      its.slots = slots;
      found.emplace_back(its.peer, its.busy());
    }
    return found;
  }

  /// Whether the launchers of `host` have said, since they were told, that they run at most `slots`
  /// workers. A message on a connection that breaks may not arrive.
  bool have_heard_limit(const std::string& host, int slots) const {
    const auto is_meant = meaning(host);
    bool any = false;
    for (const auto& [id, its] : known_) {
      if (!its.peer || its.host.empty() || !is_meant(its)) continue;
      if (its.said_slots != slots) return false;
      any = true;
    }
    return any;
  }

  /// "a, b": the hosts with a launcher that is connected.
  std::string hosts() const {
    std::string names;
    for (const auto& its : status()) {
      if (its.connected) names += (names.empty() ? "" : ", ") + its.host;
    }
    return names;
  }

  /// The launchers, for the count of workers that are left when some leave.
  std::vector<WorkerPlace> places() const {
    std::vector<WorkerPlace> all;
    for (const auto& [id, its] : known_) {
      if (id.empty() || its.host.empty()) continue;
      all.push_back({its.number, its.host, its.slots, takes_workers(its)});
    }
    return all;
  }

  /// Those that have enlisted and run workers, by number.
  std::vector<StatusReply::Launcher> status() const {
    std::vector<StatusReply::Launcher> all;
    for (const auto& [id, its] : known_) {
      if (its.host.empty()) continue;
      all.push_back({its.number, its.host, its.slots, its.running, static_cast<bool>(its.peer)});
    }
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    return all;
  }

 private:
  static constexpr int kWatches = -1;  ///< number of a launcher without workers
  static constexpr const char* kLongerList =
      "add a host or slots to the list of --hostfile or --discover: workers are then started there "
      "by themselves; a list of --hosts stays as it is";
  static constexpr const char* kAnotherLauncher =
      "start another launcher with elasticrun --join and the job's secret file";

  struct Launcher {
    Peer peer{};  ///< null: not connected
    std::string host;
    int number = -1;
    bool placed = false;                          ///< it has asked for a number
    int slots = std::numeric_limits<int>::max();  ///< as it said, or as it was limited since
    int said_slots = -1;                          ///< in its latest Enlist
    int running = 0;
    std::int64_t spawned = 0;
    std::int64_t wanted = 0;   ///< requested of it, in all
    std::int64_t ends = 0;     ///< of workers that it has told of
    bool ends_silent = false;  ///< see Enlist

    std::int64_t busy() const { return running + std::max<std::int64_t>(0, wanted - spawned); }
  };
  using Known = std::map<std::string, Launcher>;  ///< by id; "": one that has not enlisted

  std::vector<Peer> unenlisted() const {
    std::vector<Peer> found = peers_;
    std::erase_if(found, [this](const Peer& peer) { return has_enlisted(peer); });
    return found;
  }

  /// A launcher that was started again on a host takes the place of the one before, with its number
  /// if it asks for none: hosts that come and go for weeks would make the list long.
  void forget_predecessor(const Enlist& its) {
    std::erase_if(known_, [&](const auto& one) {
      const Launcher& before = one.second;
      return !one.first.empty() && !its.host.empty() && !before.peer && its.host == before.host &&
             its.number.value_or(before.number) == before.number;
    });
  }

  int free_number(const std::optional<int>& wish) const {
    std::set<int> taken;
    for (const auto& [id, launcher] : known_) taken.insert(launcher.number);
    if (wish && *wish >= 0 && !taken.contains(*wish)) return *wish;
    int number = 0;
    while (taken.contains(number)) ++number;
    return number;
  }

  /// Whether `name` means a launcher.
  std::function<bool(const Launcher&)> meaning(const std::string& name) const {
    const auto has_number = [name](const Launcher& its) {
      return std::to_string(its.number) == name;
    };
    if (!host_where(has_number).empty()) return has_number;
    return [name](const Launcher& its) { return its.host == name; };
  }

  template <typename Condition>
  std::vector<int> numbers_where(const Condition& holds) const {
    std::vector<int> numbers;
    for (const auto& [id, its] : known_) {
      if (!its.host.empty() && holds(its)) numbers.push_back(its.number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }

  template <typename Condition>
  std::string host_where(const Condition& holds) const {
    for (const auto& [id, its] : known_) {
      if (!its.host.empty() && holds(its)) return its.host;
    }
    return "";
  }

  bool takes_workers(const Launcher& its) const {
    return its.peer && !quarantined_.contains(its.host);
  }

  typename Known::iterator roomiest(Known& known) const {
    auto best = known.end();
    for (auto one = known.begin(); one != known.end(); ++one) {
      const Launcher& its = one->second;
      if (!takes_workers(its) || its.busy() >= its.slots) continue;
      const bool better =
          best == known.end() ||
          std::pair(its.busy(), its.number) < std::pair(best->second.busy(), best->second.number);
      if (better) best = one;
    }
    return best;
  }

  std::string no_room(int count) const {
    std::string hosts;
    for (const auto& [id, its] : known_) {
      if (!its.peer || its.host.empty()) continue;
      hosts += (hosts.empty() ? "" : ", ") + its.host + ": " + std::to_string(its.busy()) + " of " +
               std::to_string(its.slots) +
               (quarantined_.contains(its.host) ? ", in quarantine" : "");
    }
    return "cannot add " + std::to_string(count) + " workers: the launchers have " +
           std::to_string(room()) + " free slots (" + hosts + "); " +
           (has_host_list() ? kLongerList : kAnotherLauncher);
  }

  /// Whether an elasticrun with a list of hosts starts the launchers. It runs no workers, and
  /// its job's secret is mostly random, so that no other launcher can join.
  bool has_host_list() const {
    return std::any_of(known_.begin(), known_.end(), [](const auto& one) {
      return !one.first.empty() && one.second.peer && one.second.host.empty();
    });
  }

  std::vector<Peer> peers_;  ///< in the order in which they came
  Known known_;
  std::set<std::string> quarantined_;  ///< hosts
};

}  // namespace elastic::rendezvous
