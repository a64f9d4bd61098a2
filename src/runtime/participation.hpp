#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::runtime {

/// A worker's part in view changes, as a state machine without I/O. Events come from the server,
/// the lanes, the training thread and the Linker; reactions go out through Effects. The control
/// thread runs it with real ones, the simulator with simulated ones.
///
/// A view change takes these steps here: the server's freeze stops the lanes; when all lanes are
/// quiesced, the positions are reported; the announced view is linked, and then installed. A newer
/// freeze or view restarts them at any point.
///
/// This class upholds the invariant on the worker's side (R5 in docs/atomicity.md): after a report
/// nothing of its generation is completed here, whatever happens to the connection on which it was
/// sent.
///
/// Not thread-safe: belongs to one thread.
class Participation {
 public:
  /// The state of a quiesced lane.
  struct Lane {
    std::uint64_t position = 0;
    std::string needs;  ///< see rendezvous::Report::Lane
  };
  /// The answer of the training thread to a proposed stop.
  struct Promise {
    bool accepted = false;  ///< will stop there; otherwise it has passed `commits` steps
    std::uint64_t commits = 0;
  };

  /// The outside world. All functions return at once; answers come later, as events.
  class Effects {
   public:
    virtual ~Effects() = default;
    /// Sends to the server; dropped without a connection.
    virtual void send(const rendezvous::Message& message) = 0;
    /// Freezes the lanes. Each answers with `on_quiesced` when it has stopped.
    virtual void freeze_lanes() = 0;
    /// Sets the start positions of the lanes, before the first view is installed.
    virtual void begin_lanes_at(const std::vector<std::uint64_t>& positions) = 0;
    /// Makes the links to the members of `view`. Answered by `on_linked` or `on_unlinkable`, unless
    /// cancelled.
    virtual void connect(const rendezvous::View& view) = 0;
    virtual void cancel_connect() = 0;
    /// Finds out whether the process of `member` has ended; if so, `on_ended` follows.
    virtual void watch_for_end(const rendezvous::Member& member) = 0;
    virtual void forget_ends() = 0;
    /// The lanes continue in `view`, with the links just made.
    virtual void install(const rendezvous::View& view) = 0;
    /// Requests that the training thread stops when `at_commit` steps are committed;
    /// `on_paused(round)` follows when it has. Replaces an earlier request.
    virtual Promise propose(std::uint64_t round, std::uint64_t at_commit) = 0;
    virtual void withdraw() = 0;
    /// Releases a stopped training thread.
    virtual void resume() = 0;
    virtual bool paused_for(std::uint64_t round) const = 0;
    virtual std::uint64_t commits() const = 0;
    /// The number of completed operations of each lane.
    virtual std::vector<std::uint64_t> positions() const = 0;
    virtual bool synced() const = 0;
    /// Ends this worker's part in the job, with the reason for its calls.
    virtual void end(const Status& reason) = 0;
  };

  /// `self` is this worker's incarnation. `effects` must outlive this.
  Participation(std::string self, std::size_t lanes, Effects& effects);

  /// The first message of a new connection to the server. `identity` names the worker.
  rendezvous::Register registration(rendezvous::Register identity) const;
  rendezvous::Heartbeat heartbeat() const { return {generation_, effects_.positions()}; }

  // Events from the server.
  void on_welcome();
  void on_freeze(const rendezvous::Freeze& freeze);
  void on_check(const rendezvous::Check& check);
  void on_announce(const rendezvous::SharedView& announced);
  void on_view_request(const rendezvous::ViewRequest& request);
  void on_disconnected();

  // Events from the lanes, the training thread and the Linker.
  void on_quiesced(std::size_t lane, Lane where);
  void on_paused(std::uint64_t round);
  void on_linked(std::uint64_t generation);
  void on_unlinkable(std::uint64_t generation, const std::string& incarnation,
                     const std::string& why);
  void on_ended(const std::string& incarnation);

  // Messages for the server. They are kept, and repeated to a server that comes back.
  void suspect(const rendezvous::Suspect& suspicion);
  void ready(const rendezvous::Ready& ready);
  /// Says Bye; see rendezvous::Bye for its fields.
  void bye(const rendezvous::Bye& bye);

  std::uint64_t generation() const { return generation_; }

 private:
  bool find_self(const rendezvous::View& view);
  void freeze_lanes();
  void continue_when_quiesced();
  void resume();
  void send_report(std::uint64_t round, const std::vector<Lane>& lanes);

  const std::string self_;
  const std::size_t lanes_;
  Effects& effects_;

  std::uint64_t generation_ = 0;      // of the latest announced view, installed or not
  rendezvous::SharedView view_;       // null before the first
  std::size_t rank_ = 0;              // in the latest announced view that this worker is in
  std::uint64_t report_round_ = 0;    // of the immediate freeze to answer, 0 for none
  std::uint64_t deferred_round_ = 0;  // of the step boundary promised in this view, 0 for none
  bool reported_ = false;             // in this view
  bool paused_ = false;      // the training thread is known to be stopped at a step boundary
  bool frozen_ = true;       // the lanes are frozen, or about to be
  bool installing_ = false;  // view_ is not in force yet
  bool linking_ = false;
  std::vector<std::optional<Lane>> quiesced_;

  std::optional<rendezvous::Ready> ready_;
  std::optional<rendezvous::Bye> bye_;
  std::map<std::string, rendezvous::Suspect>
      suspicions_;  // of this generation, by suspected member
};

}  // namespace elastic::runtime
