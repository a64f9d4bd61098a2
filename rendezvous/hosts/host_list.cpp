#include "rendezvous/hosts/host_list.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <optional>
#include <system_error>

namespace elastic::hosts {

namespace {

constexpr int kMostSlots = 4096;
/// Bytes of the word on what is wrong with a line.
constexpr std::size_t kMostOfLine = 300;
constexpr std::string_view kSpace = " \t\r";

Status invalid(const std::string& message) {
  return Status(Code::kInvalidArgument, message);
}

std::optional<int> number(std::string_view text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value < least || value > kMostSlots ? std::nullopt : std::optional(value);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Names go into command lines: ssh would take one that begins with '-' for an option.
bool is_name(std::string_view text) {
  return !text.empty() && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char character) {
           return std::isalnum(character) != 0 ||
                  std::string_view("._-@:%").find(static_cast<char>(character)) !=
                      std::string_view::npos;
         });
}

/// "name", "name:slots", "[address]:slots" or an IPv6 address.
Result<Host> parse_host(std::string_view text, int usual_slots) {
  std::string_view name = text;
  std::optional<std::string_view> slots;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return invalid("'" + std::string(text) + "' lacks a ']'");
    name = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) {
      return invalid("'" + std::string(text) + "' is not [ADDRESS]:SLOTS");
    }
    if (!rest.empty()) slots = rest.substr(1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    const auto colon = text.find(':');
    name = text.substr(0, colon);
    slots = text.substr(colon + 1);
  }
  if (!is_name(name)) return invalid("'" + std::string(name) + "' is no name of a host");
  Host host{std::string(name), usual_slots};
  if (!slots) return host;
  const auto given = number(*slots, 0);
  if (!given) {
    return invalid("'" + std::string(text) + "': '" + std::string(*slots) +
                   "' is no number of slots");
  }
  host.slots = *given;
  return host;
}

void add(HostList& hosts, const Host& host) {
  const auto known = std::find_if(hosts.begin(), hosts.end(),
                                  [&](const Host& other) { return other.name == host.name; });
  if (known == hosts.end()) {
    hosts.push_back(host);
  } else {
    known->slots = std::min(known->slots + host.slots, kMostSlots);
    ++known->named;
  }
}

/// The words of a line after the host's name.
Status take_setting(std::string_view word, Host& host) {
  const auto equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const bool is_slots = name == "slots";
  if (equals == std::string_view::npos ||
      (!is_slots && name != "max_slots" && name != "max-slots")) {
    return invalid("'" + std::string(word) + "' is not slots=N");
  }
  const auto value = number(word.substr(equals + 1), 0);
  if (!value) return invalid("'" + std::string(word) + "' has no number of slots");
  if (is_slots) host.slots = *value;
  return {};
}

Result<Host> parse_line(std::string_view line, int usual_slots) {
  std::optional<Host> host;
  while (!(line = trimmed(line)).empty()) {
    const std::string_view word = line.substr(0, line.find_first_of(kSpace));
    line.remove_prefix(word.size());
    if (!host) {
      const auto parsed = parse_host(word, usual_slots);
      if (!parsed.ok()) return parsed.status();
      host = parsed.value();
    } else if (const Status status = take_setting(word, *host); !status.ok()) {
      return status;
    }
  }
  return *host;
}

/// Calls `take` with each part of `text` and its number from 1 on, until one is refused.
template <typename Take>
Status for_each_part(std::string_view text, char separator, const Take& take) {
  for (int number = 1;; ++number) {
    const auto end = text.find(separator);
    if (Status status = take(text.substr(0, end), number); !status.ok()) return status;
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<HostList> parse_host_list(std::string_view text, int usual_slots,
                                 const std::string& source) {
  HostList hosts;
  const Status status = for_each_part(text, ',', [&](std::string_view part, int) {
    const auto host = parse_host(trimmed(part), usual_slots);
    if (!host.ok()) return invalid(source + ": " + host.status().message());
    add(hosts, host.value());
    return Status();
  });
  if (!status.ok()) return status;
  return hosts;
}

Result<HostList> parse_host_lines(std::string_view text, int usual_slots,
                                  const std::string& source) {
  HostList hosts;
  const Status status = for_each_part(text, '\n', [&](std::string_view line, int number) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) return Status();
    const auto host = parse_line(line, usual_slots);
    if (!host.ok()) {
      std::string wrong = host.status().message();
      if (wrong.size() > kMostOfLine) wrong.replace(kMostOfLine, wrong.size(), " ...");
      return invalid(source + ", line " + std::to_string(number) + ": " + wrong);
    }
    add(hosts, host.value());
    return Status();
  });
  if (!status.ok()) return status;
  return hosts;
}

int total_slots(const HostList& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const Host& host) { return sum + host.slots; });
}

std::vector<std::string> repeated_names(const HostList& hosts) {
  std::vector<std::string> lines;
  for (const Host& host : hosts) {
    if (host.named == 1) continue;
    lines.push_back("host " + host.name + " is named " +
                    (host.named == 2 ? "twice" : std::to_string(host.named) + " times") + ": " +
                    std::to_string(host.slots) + " slots");
  }
  return lines;
}

std::vector<int> place(const HostList& hosts, int workers, Placement placement) {
  std::vector<int> placed(hosts.size(), 0);
  int left = std::min(workers, total_slots(hosts));
  for (std::size_t at = 0; left > 0; at = (at + 1) % hosts.size()) {
    const int room = hosts[at].slots - placed[at];
    const int here = placement == Placement::kPack ? std::min(room, left) : std::min(room, 1);
    placed[at] += here;
    left -= here;
  }
  return placed;
}

}  // namespace elastic::hosts
