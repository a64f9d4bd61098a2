#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace elastic::rendezvous {

/// A slot of a launcher, in which one worker at a time runs.
struct Slot {
  int launcher = 0;  ///< its number in the job
  int number = 0;    ///< of the slot there

  bool operator==(const Slot&) const = default;
};

/// The name of a slot, as `ctl status` shows it: "slot-2.1", and "slot-1" of launcher 0.
std::string slot_label(const Slot& slot);
/// Reverse of it; none for a label that a program has chosen.
std::optional<Slot> parse_slot_label(std::string_view label);

}  // namespace elastic::rendezvous
