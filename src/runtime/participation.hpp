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

/// A worker's part in changes of the view, as a state machine without I/O. What the server, the
/// lanes, the training thread and the maker of links have to say goes in as events; what is to be
/// done about it comes out through Effects. The control thread runs it in front of real ones, the
/// simulator in front of simulated ones.
///
/// What makes the invariant hold on this side: after a report nothing of its generation is
/// completed here, whatever happens to the connection on which it was sent.
///
/// Belongs to one thread.
class Participation {
 public:
  /// Where a lane stands.
  struct Lane {
    std::uint64_t position = 0;
    std::string needs;  ///< see rendezvous::Report::Lane
  };
  /// Answer of the training thread's step boundary.
  struct Promise {
    bool accepted = false;  ///< will stop there; otherwise `commits` says how far it is already
    std::uint64_t commits = 0;
  };

  /// All return at once; where they have an answer, it comes as an event later.
  class Effects {
   public:
    virtual ~Effects() = default;
    /// To the server; dropped while there is no connection.
    virtual void send(const rendezvous::Message& message) = 0;
    /// Interrupts what the lanes do; each answers with `on_quiet` when it has stopped.
    virtual void freeze_lanes() = 0;
    /// Before the first view is installed: what this worker starts from.
    virtual void begin_lanes_at(const std::vector<std::uint64_t>& positions) = 0;
    /// Links with the members of `view`: answered by `on_linked` or `on_unlinkable`, unless
    /// cancelled.
    virtual void connect(const rendezvous::View& view) = 0;
    virtual void cancel_connect() = 0;
    /// Finds out whether the process of `member` has ended; `on_ended` follows where it has.
    virtual void watch_for_end(const rendezvous::Member& member) = 0;
    virtual void forget_ends() = 0;
    /// The lanes go on in `view`, with the links just made.
    virtual void install(const rendezvous::View& view) = 0;
    /// The training thread is to stop when `at_commit` steps are committed; `on_paused(round)`
    /// follows when it has. Replaces an earlier request.
    virtual Promise propose(std::uint64_t round, std::uint64_t at_commit) = 0;
    virtual void withdraw() = 0;
    /// Lets a training thread that has stopped go on.
    virtual void resume() = 0;
    virtual bool paused_for(std::uint64_t round) const = 0;
    virtual std::uint64_t commits() const = 0;
    /// Of each lane: operations completed.
    virtual std::vector<std::uint64_t> positions() const = 0;
    virtual bool synced() const = 0;
    /// Nothing more happens for this worker, and that is why.
    virtual void end(const Status& reason) = 0;
  };

  /// `self` is this worker's incarnation; `effects` outlive this.
  Participation(std::string self, std::size_t lanes, Effects& effects);

  /// What a new connection to the server begins with; `identity` names the worker.
  rendezvous::Register registration(rendezvous::Register identity) const;
  rendezvous::Heartbeat heartbeat() const { return {generation_, effects_.positions()}; }

  // From the server.
  void on_welcome();
  void on_freeze(const rendezvous::Freeze& freeze);
  void on_check(const rendezvous::Check& check);
  void on_announce(const rendezvous::View& view);
  void on_disconnected();

  // From the lanes, the training thread and the maker of links.
  void on_quiet(std::size_t lane, Lane where);
  void on_paused(std::uint64_t round);
  void on_linked(std::uint64_t generation);
  void on_unlinkable(std::uint64_t generation, const std::string& incarnation,
                     const std::string& why);
  void on_ended(const std::string& incarnation);

  // For the server. Kept, and said again to one that comes back.
  void suspect(const rendezvous::Suspect& suspicion);
  void ready(const rendezvous::Ready& ready);
  /// `failure`: why the job as a whole cannot go on.
  void bye(const rendezvous::Bye& bye);

  std::uint64_t generation() const { return generation_; }

 private:
  void freeze_lanes();
  void go_on_when_quiet();
  void resume();
  void send_report(std::uint64_t round, const std::vector<Lane>& lanes);

  const std::string self_;
  const std::size_t lanes_;
  Effects& effects_;

  std::uint64_t generation_ = 0;  // of the latest view announced, installed or not
  std::optional<rendezvous::View> view_;
  std::uint64_t report_round_ = 0;    // of the immediate freeze to answer, 0 for none
  std::uint64_t deferred_round_ = 0;  // of the step boundary promised in this view, 0 for none
  bool reported_ = false;             // in this view
  bool paused_ = false;               // the training thread is known to stand at a step boundary
  bool frozen_ = true;                // the lanes are, or are about to be
  bool installing_ = false;           // view_ is not in force yet
  bool linking_ = false;
  std::vector<std::optional<Lane>> quiet_;

  std::optional<rendezvous::Ready> ready_;
  std::optional<rendezvous::Bye> bye_;
  std::map<std::string, rendezvous::Suspect>
      suspicions_;  // of this generation, by whom they are about
};

}  // namespace elastic::runtime
