#pragma once

#include <cstdint>
#include <span>

#include "elastic/state.hpp"

namespace elastic::training {

/// What happens at the step boundary. `run` implements it. Called on the thread that trains.
class Boundary {
 public:
  virtual ~Boundary() = default;

  /// `state.commits()` already counts the step that is being committed. What it throws reaches the
  /// caller of State::commit.
  virtual void commit(State& state) = 0;
};

/// Connects `State::commit` to `boundary` until destroyed. While attached, nothing can be added.
class Attachment {
 public:
  /// Throws Error(kInvalidArgument) where the state is attached already: `run` within `run`.
  Attachment(State& state, Boundary& boundary);
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

 private:
  State& state_;
};

/// Tells the objects in the state that care for the members (the Sampler) who they are, in rank
/// order, and which of them this worker is.
void set_members(State& state, std::span<const WorkerId> members, WorkerId self);

}  // namespace elastic::training
