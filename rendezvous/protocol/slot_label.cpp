#include "rendezvous/protocol/slot_label.hpp"

#include <charconv>
#include <system_error>

namespace elastic::rendezvous {

namespace {

constexpr std::string_view kPrefix = "slot-";

std::optional<int> parse_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string slot_label(const Slot& slot) {
  const std::string launcher = slot.launcher == 0 ? "" : std::to_string(slot.launcher) + ".";
  return std::string(kPrefix) + launcher + std::to_string(slot.number);
}

std::optional<Slot> parse_slot_label(std::string_view label) {
  if (!label.starts_with(kPrefix)) return std::nullopt;
  label.remove_prefix(kPrefix.size());
  const auto dot = label.find('.');
  const bool first = dot == std::string_view::npos;
  const auto launcher = first ? std::optional<int>(0) : parse_number(label.substr(0, dot));
  const auto number = parse_number(first ? label : label.substr(dot + 1));
  if (!launcher || !number) return std::nullopt;
  return Slot{*launcher, *number};
}

}  // namespace elastic::rendezvous
