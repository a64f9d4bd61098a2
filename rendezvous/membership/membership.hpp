#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/membership/pending_requests.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::rendezvous {

/// The numbers of workers and the time limits by which a Membership decides.
struct MembershipOptions {
  int initial_np = 1;  ///< number of workers in the first view
  int min_np = 1;      ///< with fewer members the job waits or fails
  int max_np = 0;      ///< further joiners wait; 0: no bound
  int lanes = 2;
  Milliseconds heartbeat{50};        ///< period of workers' heartbeats, sent to them in Welcome
  Milliseconds evict_after{500};     ///< silence after which a member is given up
  Milliseconds report_window{1000};  ///< time for a frozen member's report, whatever its heartbeats
                                     ///< say
  Milliseconds start_timeout{60000};          ///< after which min_np workers make the first view
  Milliseconds below_minimum_timeout{60000};  ///< wait for joiners with fewer than min_np members
  /// Longest transfer of the state to a joiner: the members wait for it, so a slower joiner is not
  /// admitted. It does not apply while the members wait for joiners anyway, below min_np.
  Milliseconds max_join_stall{10000};
  /// How long the first members that say Bye{done} wait for the others, before a view change
  /// removes them.
  Milliseconds farewell_grace{500};
  /// Time for members to come back after a restart of the server or after the loss of most
  /// connections. Begins when the first of them is back.
  Milliseconds return_window{5000};
  /// Time for a single member to come back after the loss of its connection, unless its process is
  /// proved to have ended. If `evict_after` is longer, that applies. Longer than the pauses between
  /// clients' attempts.
  Milliseconds disconnect_grace{1500};
  /// Time for the first member to come back after the loss of all connections. Long, because it is
  /// the server that may be cut off, and members train on without it.
  Milliseconds outage_window{300000};
  /// Replaces `return_window` if members that are back report broken links to all missing members.
  /// Longer than the pauses between clients' attempts.
  Milliseconds suspect_return_window{1500};
  /// Without a journal: adopt the highest view that any member reports, even without a majority of
  /// its members.
  bool adopt_any = false;
};

/// The state that the journal gives to a server that is started again.
struct RecoveredState {
  std::optional<View> view;  ///< the last durable one
  std::uint64_t floor = 0;   ///< generations up to this one are not used (again)
  /// How the job of `view` ended, if it did: its members are told so, and another job begins.
  std::optional<LastWord> end = {};
  /// With `end`: no other job begins, as on the server that saw this one end.
  bool stays_over = false;
  PendingRequests requests = {};  ///< of the job of `view`
};

// ---- events -----------------------------------------------------------------------------------
/// A worker has registered on a new connection. If its incarnation has a connection already, the
/// new one replaces it, because the end of the older one has not been noticed yet.
struct Registered {
  Register registration;
  /// A launcher is connected. It has then started a worker that comes after the job's end for this
  /// job, and not for another training.
  bool launched = false;
};
struct Received {
  std::string incarnation;
  Message message;  ///< Heartbeat, Suspect, Promise, Paused, Report, Ready, Bye, Gone
};
/// The connection to a worker has ended. This proves no death: a member may come back.
struct ConnectionLost {
  std::string incarnation;
  std::string reason;
};
/// The worker's process has provably ended. Takes effect when its connection is lost too.
struct ProcessEnded {
  std::string incarnation;
  std::string reason;
};
struct RemoveWorker {
  int rank = 0;
};
struct StopJob {
  /// A launcher is connected. It ends workers that reach no step boundary: see ends_workers().
  bool launched = false;
};
/// The first view needs no more than so many workers: others cannot be started.
struct ExpectWorkers {
  int count = 1;
};
struct Tick {};  ///< time has passed; see Decision::next_tick
using Event = std::variant<Registered, Received, ConnectionLost, ProcessEnded, RemoveWorker,
                           StopJob, ExpectWorkers, Tick>;

// ---- actions ----------------------------------------------------------------------------------
/// One message to one worker or more, in this order.
struct SendTo {
  std::vector<std::string> incarnations;
  Message message;
};
/// Closes the connection after all messages sent to it have been written.
struct CloseConnection {
  std::string incarnation;
};
/// Appends `view` to the journal. It must be durable before any later action of the list is carried
/// out.
struct Journal {
  View view;
};
/// Records in the journal that generations up to `up_to` may have been used. Durable as for
/// Journal.
struct ReserveGenerations {
  std::uint64_t up_to = 0;
};
/// Records in the journal how the job ended. If that fails, or takes long, the job ends all the
/// same.
struct JournalEnd {
  LastWord word;
};
/// Records in the journal what people have asked for; `requests.limits` is not Membership's, and
/// empty. Durable as for Journal, so before the person has the answer.
struct JournalRequests {
  PendingRequests requests;
};
using Action =
    std::variant<SendTo, CloseConnection, Journal, ReserveGenerations, JournalEnd, JournalRequests>;

struct Decision {
  /// A member that was given up.
  struct Eviction {
    std::string name;  ///< with its rank, for a person
    std::int64_t pid = 0;
    std::string label;
    std::string why;
  };
  /// A member that was given up because it does not answer, and whose process is to be ended: it
  /// holds up others of its host (see Register::end_if_silent).
  struct Silent {
    std::string label;
    std::int64_t pid = 0;
    std::string why;
  };
  std::vector<Action> actions;
  std::string reason;  ///< for the log; empty if nothing was decided
  bool ok = true;      ///< false: the event was refused, such as RemoveWorker of an unknown rank
  std::string answer = {};                 ///< for the person with the request that was granted
  std::vector<std::string> warnings = {};  ///< for the log, if a person has to act
  std::vector<Eviction> evicted = {};
  std::vector<Silent> silent = {};
};

enum class Phase : std::uint8_t { kForming, kRecovering, kRunning, kChanging, kDone, kFailed };
const char* name(Phase phase) noexcept;

/// The decisions of the rendezvous server, as a state machine without I/O. `decide` takes an event
/// and the time, changes the state, and returns actions with their reason. The server runs it
/// behind sockets; tests and the simulator call it directly.
///
/// Incarnations name workers throughout. A former member is never admitted again under the same
/// incarnation: it is sent the farewell that it missed.
///
/// Not thread-safe: one thread at a time, the server's, uses it.
class Membership {
 public:
  explicit Membership(MembershipOptions options, RecoveredState memory = {});
  ~Membership();
  Membership(Membership&&) noexcept;
  Membership& operator=(Membership&&) noexcept;

  Decision decide(const Event& event, TimePoint now);

  /// When `Tick` is due unless another event comes first; TimePoint::max() for never.
  TimePoint next_tick() const;

  Phase phase() const;
  const View& view() const;
  /// The member of that name; null: it is none.
  const Member* member(const std::string& incarnation) const;
  /// Whether the member of that name was asked to leave, or is gone. True also for a former member.
  bool leaves(const std::string& incarnation) const;
  /// The number of workers that the job has or waits for.
  std::size_t expected_workers() const;
  StatusReply status(TimePoint now) const;  ///< `job` is left empty
  /// The job's step rate of the last seconds.
  double steps_per_second(TimePoint now) const;
  /// Whether some member is in `run`, so that a joiner can become a member.
  bool joinable() const;
  /// Whether the job was stopped while no worker was in `run`. Workers are not told, because a
  /// collective would throw the news as an exception; the launcher ends them.
  bool ends_workers() const;
  /// Whether the job is over because it was stopped on request.
  bool stopped() const;
  /// How the job before this one ended, which the journal held.
  const std::optional<LastWord>& earlier_end() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace elastic::rendezvous
