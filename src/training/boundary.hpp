#pragma once

#include <cstdint>
#include <span>

#include "elastic/state.hpp"

namespace elastic::training {

/// The actions at the step boundary. `run` implements them. Called on the thread that trains.
class Boundary {
 public:
  virtual ~Boundary() = default;

  /// Called first, before the step counts as committed. Its exceptions reach the caller of
  /// State::commit, and then the step is not committed.
  virtual void before_commit() {}

  /// `state.commits()` already counts the step that is being committed. Its exceptions reach the
  /// caller of State::commit.
  virtual void commit(State& state) = 0;

  /// The generation of this worker's view; 0 if it is in none.
  virtual std::uint64_t generation() const { return 0; }

  /// Throws kEvicted and the like if the server is known to have given this worker up.
  virtual void check_membership() {}

  /// For a worker that has found that the job went on without it: throws what the server says of
  /// that, and returns if it says nothing within a few seconds.
  virtual void await_end() {}
};

/// Connects `State::commit` to `boundary` until destroyed. While attached, nothing can be added.
class Attachment {
 public:
  /// Throws Error(kInvalidArgument) where the state is attached already (`run` within `run`), and
  /// where a vector in it has changed its size.
  Attachment(State& state, Boundary& boundary);
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

 private:
  State& state_;
};

/// Tells the objects in the state that depend on the members (the Sampler) the members, in rank
/// order, and which of them this worker is.
void set_members(State& state, std::span<const WorkerId> members, WorkerId self);

}  // namespace elastic::training
