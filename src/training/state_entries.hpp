#pragma once

#include <string>
#include <vector>

#include "elastic/state.hpp"
#include "training/training_id.hpp"

namespace elastic {

namespace training {
class Boundary;
}

/// The insides of a State. Owned, like it, by the thread that calls `run`.
struct State::Entries {
  struct Entry {
    std::string name;
    std::string type;
    std::size_t count = 0;  // elements; 0 for objects, whose size may vary
    std::size_t element_bytes = 0;
    // Where the caller's elements lie now: a vector can move them. Empty for objects.
    std::function<std::span<std::byte>()> elements;
    Object object;  // its functions are empty for memory

    bool is_object() const { return static_cast<bool>(object.save); }
    std::size_t bytes() const { return count * element_bytes; }
    /// The elements. Throws Error(kInvalidArgument) where a vector has changed its size. Not for
    /// objects.
    std::span<std::byte> memory() const;
  };

  Entry& append(std::string_view name);
  /// Throws Error(kInvalidArgument) where a vector has changed its size.
  void check_sizes() const;

  /// Takes over the generation of the view that `run` is in. In another job, whose generations
  /// begin at 1 again, they go on behind those before.
  void see_generation();
  /// Grows with every change of the view, also through restarts from a checkpoint.
  std::uint64_t generation() const { return generations_before + generation_in_job; }

  std::vector<Entry> list;
  training::Boundary* boundary = nullptr;  // not owned; set while `run` runs
  std::uint64_t commits = 0;
  /// The training that this is the state of, and the branch of it: see training_id.hpp. Joiners
  /// receive it, and checkpoints keep it.
  std::uint64_t training = training::new_training();
  /// A checkpoint was loaded, and no job has gone on from it yet: that will be another branch.
  bool loaded = false;
  std::uint64_t generations_before = 0;  // of the checkpoint that the job began with
  std::uint64_t commits_before = 0;      // of that checkpoint
  std::uint64_t generation_in_job = 0;   // of the latest view seen; 0: none yet
};

/// Access to State's insides for the code beside it only.
class StateAccess {
 public:
  using Entries = State::Entries;
  using Entry = State::Entries::Entry;
  static Entries& entries(State& state) { return *state.entries_; }
  static const Entries& entries(const State& state) { return *state.entries_; }
};

}  // namespace elastic
