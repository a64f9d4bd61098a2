#pragma once

#include <string>
#include <vector>

#include "elastic/state.hpp"

namespace elastic {

namespace training {
class Boundary;
}

/// The insides of a State. Owned, like it, by the thread that calls `run`.
struct State::Entries {
  struct Entry {
    std::string name;
    std::string type;
    std::size_t count = 0;        // elements; 0 for objects, whose size may vary
    std::span<std::byte> memory;  // the caller's; empty for objects
    Object object;                // its functions are empty for memory

    bool is_object() const { return static_cast<bool>(object.save); }
  };

  Entry& append(std::string_view name);

  std::vector<Entry> list;
  training::Boundary* boundary = nullptr;  // not owned; set while `run` runs
  std::uint64_t commits = 0;
};

/// The door to State's insides for the code beside it and for nobody else.
class StateAccess {
 public:
  using Entries = State::Entries;
  using Entry = State::Entries::Entry;
  static Entries& entries(State& state) { return *state.entries_; }
  static const Entries& entries(const State& state) { return *state.entries_; }
};

}  // namespace elastic
