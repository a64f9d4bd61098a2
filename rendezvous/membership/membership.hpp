#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// The decisions of the rendezvous server as a state machine without I/O: `decide` takes an event
/// and the time, changes the state, and says what to do and why. The server runs it behind sockets;
/// tests and the simulator run it behind nothing.
///
/// Workers are named by incarnation throughout. An incarnation that was a member once and is not
/// any more is never taken back: it is answered with the farewell that it missed.
struct MembershipOptions {
  int initial_np = 1;  ///< workers that make the first view
  int min_np = 1;      ///< fewer cannot go on
  int max_np = 0;      ///< more are kept waiting; 0: no bound
  int lanes = 2;
  Milliseconds heartbeat{50};                 ///< period that workers are told to keep
  Milliseconds evict_after{500};              ///< silence after which a member is given up
  Milliseconds report_window{1000};           ///< for a frozen member's report, heartbeats or not
  Milliseconds start_timeout{60000};          ///< after which min_np workers make the first view
  Milliseconds below_minimum_timeout{60000};  ///< for joiners when fewer than min_np are left
  /// A joiner that would need longer to receive the state is kept waiting, because the members
  /// would wait for it; not where they wait anyway, because they are too few.
  Milliseconds max_join_stall{10000};
  /// How long the first to say Bye{done} wait for the others before a view change removes them.
  Milliseconds farewell_grace{500};
  /// For members to come back to a server that was started again, or after most connections were
  /// lost at once; from when the first one is there.
  Milliseconds return_window{5000};
  /// For a member to come back whose connection is lost, where nothing proves that its process has
  /// ended; `evict_after` if that is longer. Longer than the pauses that clients make.
  Milliseconds disconnect_grace{1500};
  /// For the first member to come back where the connections of all are lost.
  Milliseconds outage_window{8000};
  /// Likewise, where all that are missing have broken links to those that are back. Longer than the
  /// pauses that clients make.
  Milliseconds suspect_return_window{1500};
  /// Without a journal: take up the highest view that any member reports, though no majority of its
  /// members is there.
  bool adopt_any = false;
};

/// What a server that is started again knows of the job.
struct Memory {
  std::optional<View> view;  ///< the last that was made durable
  std::uint64_t floor = 0;   ///< no generation up to this one is given (again)
  /// That job is over: its members are told so, and another one begins.
  std::optional<LastWord> end = {};
};

// ---- events -----------------------------------------------------------------------------------
/// On a new connection. Of an incarnation that is connected already it replaces the older one,
/// whose end has not been noticed yet.
struct Registered {
  Register registration;
  /// A launcher is there. A worker that comes after the job's end is one that it has started for
  /// this job, and not of another training.
  bool launched = false;
};
struct Received {
  std::string incarnation;
  Message message;  ///< Heartbeat, Suspect, Promise, Report, Ready, Bye or Gone
};
/// No proof of a death: a member may come back.
struct ConnectionLost {
  std::string incarnation;
  std::string reason;
};
/// It is certain that the worker's process has ended. Counts once its connection is lost as well.
struct ProcessEnded {
  std::string incarnation;
  std::string reason;
};
struct RemoveWorker {
  int rank = 0;
};
struct StopJob {
  /// A launcher is there. It ends workers that come to no step boundary: see ends_workers().
  bool launched = false;
};
struct Tick {};  ///< time has passed; see Decision::next_tick
using Event =
    std::variant<Registered, Received, ConnectionLost, ProcessEnded, RemoveWorker, StopJob, Tick>;

// ---- actions ----------------------------------------------------------------------------------
struct SendTo {
  std::string incarnation;
  Message message;
};
/// After what was sent to it has been written out.
struct CloseConnection {
  std::string incarnation;
};
/// Must be durable before any action after it in the list is carried out.
struct Journal {
  View view;
};
/// Generations up to this one may have been given before: likewise.
struct ReserveGenerations {
  std::uint64_t up_to = 0;
};
/// The job is over: likewise, as far as the disk takes it. The end itself does not wait for it.
struct JournalEnd {
  LastWord word;
};
using Action = std::variant<SendTo, CloseConnection, Journal, ReserveGenerations, JournalEnd>;

struct Decision {
  std::vector<Action> actions;
  std::string reason;  ///< for the log: why; empty when nothing was decided
  bool ok = true;  ///< false: the event was refused (RemoveWorker of a rank that is not there, …)
  std::string answer = {};                 ///< for the person whose request was granted
  std::vector<std::string> warnings = {};  ///< for the log, where it is a person who has to act
};

enum class Phase : std::uint8_t { kForming, kRecovering, kRunning, kChanging, kDone, kFailed };
const char* name(Phase phase) noexcept;

/// Belongs to one thread at a time, the server's.
class Membership {
 public:
  explicit Membership(MembershipOptions options, Memory memory = {});
  ~Membership();
  Membership(Membership&&) noexcept;
  Membership& operator=(Membership&&) noexcept;

  Decision decide(const Event& event, TimePoint now);

  /// When `Tick` is due if nothing else happens; TimePoint::max() for never.
  TimePoint next_tick() const;

  Phase phase() const;
  const View& view() const;
  StatusReply status(TimePoint now) const;  ///< `job` is left empty
  /// Whether some member is in `run`, so that a newcomer can become a member.
  bool joinable() const;
  /// The job was stopped where no worker is in `run`. Workers are not told, because they would hear
  /// of it as an exception from a collective; the launcher ends them.
  bool ends_workers() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace elastic::rendezvous
