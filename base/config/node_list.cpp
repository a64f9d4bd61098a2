#include "base/config/node_list.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <system_error>
#include <utility>

namespace elastic {

namespace {

using Names = std::vector<std::string>;

/// Far more nodes than any cluster has; a damaged list is not to fill the memory.
constexpr std::size_t kMostNodes = 100000;

/// The parts between the commas outside of brackets. None: the brackets do not match.
std::optional<std::vector<std::string_view>> split(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool within = false;
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (list[at] == '[' || list[at] == ']') {
      if (within == (list[at] == '[')) return std::nullopt;
      within = !within;
    } else if (list[at] == ',' && !within) {
      parts.push_back(list.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  if (within) return std::nullopt;
  parts.push_back(list.substr(begin));
  return parts;
}

std::optional<unsigned> number(std::string_view digits) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// "08-10" as "08", "09", "10": leading zeros stay.
bool append_range(std::string_view range, Names& names) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const auto first = number(low);
  const auto last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last - *first >= kMostNodes) return false;
  for (unsigned value = *first; value <= *last; ++value) {
    std::string text = std::to_string(value);
    text.insert(0, low.size() - std::min(low.size(), text.size()), '0');
    names.push_back(std::move(text));
  }
  return true;
}

/// Each of `heads` followed by each of `tails`.
Names products(const Names& heads, const Names& tails) {
  Names made;
  for (const std::string& head : heads) {
    for (const std::string& tail : tails) made.push_back(head + tail);
  }
  return made;
}

/// The names of one part, such as "rack[1-2]n[08-10,12]-ib". Empty: it is wrong.
Names expand(std::string_view part) {
  Names names{""};
  while (!part.empty()) {
    const std::size_t open = part.find('[');
    names = products(names, {std::string(part.substr(0, open))});
    if (open == std::string_view::npos) return names;
    const std::size_t close = part.find(']', open);
    const auto ranges = split(part.substr(open + 1, close - open - 1));
    Names numbers;
    for (const std::string_view range : *ranges) {
      if (!append_range(range, numbers)) return {};
    }
    if (names.size() * numbers.size() > kMostNodes) return {};
    names = products(names, numbers);
    part.remove_prefix(close + 1);
  }
  return names.front().empty() ? Names() : names;
}

}  // namespace

Result<std::vector<std::string>> parse_node_list(std::string_view list, const std::string& source) {
  const Status wrong(Code::kInvalidArgument, "environment variable " + source + " is '" +
                                                 std::string(list) +
                                                 "': must be a list of nodes, such as node[0-3,7]");
  const auto parts = split(list);
  if (!parts) return wrong;
  Names all;
  for (const std::string_view part : *parts) {
    Names names = expand(part);
    if (names.empty() || all.size() + names.size() > kMostNodes) return wrong;
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

}  // namespace elastic
