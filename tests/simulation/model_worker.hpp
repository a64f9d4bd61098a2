#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chance.hpp"
#include "fabric.hpp"
#include "rendezvous/protocol/messages.hpp"
#include "virtual_time.hpp"

namespace elastic::simulation {

inline constexpr std::size_t kLanes = 2;
inline constexpr std::uint64_t kOperationsPerStep = 2;  ///< in each lane

/// How an operation ended: by which generation's members, or lost with its root.
struct Outcome {
  std::uint64_t generation = 0;
  bool lost = false;
  bool operator==(const Outcome&) const = default;
};

/// What a worker needs of the world around it.
struct Surroundings {
  VirtualTime& time;
  Chance& chance;
  Fabric& fabric;
  std::uint64_t steps = 0;  ///< of the whole job
  bool uses_run = true;
  std::function<void(const std::string& from, rendezvous::Message message)> send;
  std::function<class ModelWorker*(const std::string& incarnation)> peer;
};

/// A worker as the server sees it: two lanes that run operations as far as the other members let
/// it, step boundaries, and the answers to freeze and announce. Stands for the library together
/// with a trainer; carries no data but, for each operation, how it ended.
class ModelWorker {
 public:
  ModelWorker(std::string incarnation, Surroundings& around);

  void start();
  void receive(const rendezvous::Message& message);
  /// Looks for something that it can do now, and does it.
  void go_on();

  void kill();
  void pause();  ///< SIGSTOP: the process stands still, its connection stays open
  void resume();
  void leave_early();
  void disconnected();  ///< by the server

  bool alive() const { return alive_; }
  bool over() const { return !alive_ || over_; }
  /// Something was done to it for which the job may lose it.
  bool faulted() const { return faulted_; }
  void mark_faulted() { faulted_ = true; }
  bool asked_to_leave() const { return said_bye_; }
  bool at_boundary() const { return stopped_; }
  bool synced() const { return synced_; }
  std::uint64_t commits() const { return commits_; }
  std::uint64_t generation() const { return view_.generation; }
  std::uint64_t position(std::size_t lane) const { return lanes_[lane].position; }
  const std::string& needs(std::size_t lane) const { return lanes_[lane].needs; }
  const std::map<std::uint64_t, Outcome>& outcomes(std::size_t lane) const {
    return lanes_[lane].outcomes;
  }
  /// Where it stands, for the message of a run that went wrong.
  std::string describe() const;
  const std::string& incarnation() const { return incarnation_; }

 private:
  struct Lane {
    std::uint64_t position = 0;
    bool entered = false;    ///< in operation `position`, in the present generation
    bool in_flight = false;  ///< called, and not returned: survives a view change
    bool taking = false;     ///< has to be handed the result of operation `position` first
    std::string needs;
    std::map<std::uint64_t, Outcome> outcomes;
  };

  void beat();
  void on_freeze(const rendezvous::Freeze& freeze);
  void on_announce(const rendezvous::View& view);
  void install();
  void report(std::uint64_t round);
  void go_on_in(std::size_t lane);
  void take(std::size_t lane);
  void enter(std::size_t lane);
  void complete(std::size_t lane, Outcome outcome);
  void maybe_commit();
  void bye(bool done);
  bool member() const { return view_.generation != 0; }
  bool running() const {
    return alive_ && !over_ && !paused_ && member() && installed_ && !frozen_;
  }
  /// `what` at a later time, unless the worker is dead or stands still then, or over.
  void later(Milliseconds least, Milliseconds most, std::function<void()> what);
  void say(rendezvous::Message message);

  const std::string incarnation_;
  Surroundings& around_;
  rendezvous::View view_;
  std::array<Lane, kLanes> lanes_;
  std::uint64_t commits_ = 0;

  bool alive_ = true;
  bool paused_ = false;
  bool over_ = false;
  bool faulted_ = false;
  bool synced_ = false;
  bool said_bye_ = false;
  bool leave_early_ = false;
  bool installed_ = false;
  bool frozen_ = false;
  bool computing_ = false;      ///< between operations; a step is not all communication
  std::uint64_t freezing_ = 0;  ///< round of the freeze that is being obeyed
  std::uint64_t stop_at_ = 0;   ///< promised
  std::uint64_t stop_round_ = 0;
  bool stopped_ = false;                       ///< stands at the boundary
  std::vector<std::function<void()>> missed_;  ///< while it stood still
};

}  // namespace elastic::simulation
