#include "base/layout.hpp"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>

#include "base/hash.hpp"

namespace elastic {
namespace {

/// In front of an option's value, where the State's entries have their type.
constexpr std::string_view kOption = "option ";
/// How a difference in an option's value begins.
constexpr std::string_view kOfAnOption = "Options::";

bool is_option(const LayoutEntry& entry) {
  return entry.type.starts_with(kOption);
}

std::string value_of(const LayoutEntry& option) {
  return "'" + option.type.substr(kOption.size()) + "'";
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char character) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
  });
  return text;
}

std::string shape(const LayoutEntry& entry) {
  return entry.count == 0 ? entry.type : entry.type + " x " + std::to_string(entry.count);
}

std::string quoted(const LayoutEntry& entry) {
  return "state entry '" + entry.name + "': ";
}

}  // namespace

LayoutEntry option_entry(const std::string& name, const std::string& value) {
  return {name, std::string(kOption) + value, 0};
}

std::uint64_t hash_of(const Layout& layout) {
  std::string text;
  for (const LayoutEntry& entry : layout) {
    for (const std::string& part : {entry.name, entry.type, std::to_string(entry.count)}) {
      text += std::to_string(part.size()) + ":" + part;
    }
  }
  return hash_of(std::as_bytes(std::span(text)));
}

std::string layout_difference(const Layout& layout, const std::string& owner, const Layout& other,
                              const std::string& others_owner) {
  const std::size_t common = std::min(layout.size(), other.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (layout[i] == other[i]) continue;
    if (is_option(layout[i]) && is_option(other[i]) && layout[i].name == other[i].name) {
      return std::string(kOfAnOption) + layout[i].name + ": " + owner + " has " +
             value_of(layout[i]) + ", " + others_owner + " " + value_of(other[i]) +
             "; give it, or its variable ELASTIC_" + upper(layout[i].name) +
             ", the same value on all workers";
    }
    if (layout[i].name != other[i].name) {
      const auto options = std::ranges::count_if(layout, is_option);
      return "state entry " + std::to_string(i - static_cast<std::size_t>(options)) + ": " + owner +
             " has '" + layout[i].name + "', " + others_owner + " '" + other[i].name + "'";
    }
    return quoted(layout[i]) + owner + " has " + shape(layout[i]) + ", " + others_owner + " " +
           shape(other[i]);
  }
  if (layout.size() > common) {
    return quoted(layout[common]) + owner + " has " + shape(layout[common]) + ", " + others_owner +
           " does not have it";
  }
  if (other.size() > common) {
    return quoted(other[common]) + owner + " does not have it, " + others_owner + " has " +
           shape(other[common]);
  }
  return "";
}

std::string workers_difference(const Layout& layout, const std::string& owner, const Layout& other,
                               const std::string& others_owner) {
  const std::string difference = layout_difference(layout, owner, other, others_owner);
  // A message about an option has advice of its own.
  if (difference.empty() || difference.starts_with(kOfAnOption)) return difference;
  return difference + "; add the same entries, of the same types and sizes, on all workers";
}

}  // namespace elastic
