#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "process.hpp"
#include "runtime/participation.hpp"

namespace elastic::simulation {

/// Stands for the program and for runtime::CommitGate: steps of operations in both lanes, with
/// computing between them, a boundary after each, and the synchronisation with those who join
/// there.
class ModelTrainer {
 public:
  struct Callbacks {
    std::function<void(std::size_t lane)> call;
    std::function<void(std::uint64_t round)> on_paused;
    std::function<std::uint64_t()> admitted_at;  ///< of the view in force
    std::function<void(bool done)> bye;
  };

  ModelTrainer(Process& process, Callbacks callbacks);

  /// The worker has become a member; it starts from `commits`.
  void start();
  void on_done(std::size_t lane);
  void leave_early() { leave_early_ = true; }

  // As of runtime::CommitGate.
  runtime::Participation::Promise propose(std::uint64_t round, std::uint64_t at_commit);
  void withdraw() { stop_at_ = 0; }
  void resume();
  bool paused_for(std::uint64_t round) const { return paused_ && paused_round_ == round; }
  std::uint64_t commits() const { return commits_; }

  bool synced() const { return synced_; }
  bool said_bye() const { return said_bye_; }
  bool paused() const { return paused_; }
  std::string describe() const;

 private:
  void synchronise();
  void begin_step();
  void finish_step();
  void go_on_from_boundary(bool was_paused);
  void bye(bool done);

  Process& process_;
  const Callbacks callbacks_;
  std::array<unsigned, kLanes> left_{};  // operations to do in this step, or synchronisation
  bool synchronising_ = false;
  bool synced_ = false;
  bool leave_early_ = false;
  bool said_bye_ = false;

  std::uint64_t commits_ = 0;
  std::uint64_t stop_at_ = 0;  // 0: nobody asked
  std::uint64_t round_ = 0;
  std::uint64_t paused_round_ = 0;
  bool paused_ = false;
};

}  // namespace elastic::simulation
