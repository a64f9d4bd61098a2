#include "coordinator/group_names.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

namespace elastic::coordinator {

namespace {

constexpr std::size_t kMarkDigits = 8;
constexpr std::size_t kWorkersDigits = 16;
constexpr std::string_view kMessage = "message from ";
constexpr std::string_view kTo = " to ";
constexpr std::string_view kTag = ", tag ";
constexpr std::string_view kNumber = ", #";
constexpr char kBeforeName = ':';
constexpr char kBeforeNumber = '#';

/// The parts of "RULE~MARK@WORKERS/:NAME" and "RULE~MARK@WORKERS/#NUMBER".
struct Parts {
  std::string_view rule;
  char kind = kBeforeName;
  std::string_view call;
};

bool are_digits(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char each) { return std::isxdigit(each) != 0; });
}

/// A rule may have any of the characters that end it, so the first whole mark counts.
std::optional<Parts> parts_of(std::string_view name) {
  constexpr std::size_t kRest = 1 + kMarkDigits + 1 + kWorkersDigits + 2;
  for (std::size_t at = name.find('~'); at != std::string_view::npos; at = name.find('~', at + 1)) {
    if (name.size() < at + kRest) break;
    const std::string_view rest = name.substr(at, kRest);
    const char kind = rest.back();
    if (rest[1 + kMarkDigits] == '@' && rest[kRest - 2] == '/' &&
        (kind == kBeforeName || kind == kBeforeNumber) && are_digits(rest.substr(1, kMarkDigits)) &&
        are_digits(rest.substr(kMarkDigits + 2, kWorkersDigits))) {
      return Parts{name.substr(0, at), kind, name.substr(at + kRest)};
    }
  }
  return std::nullopt;
}

/// "#1 with tag 7 from worker 0123456789abcdef to worker 123456789abcdef0"; empty if this is no
/// name of a message.
std::string message_of(std::string_view name) {
  const std::size_t tag = name.rfind(kTag);
  const std::size_t number = name.rfind(kNumber);
  constexpr std::size_t kId = 16;
  constexpr std::size_t kReceiverAt = kMessage.size() + kId + kTo.size();
  const bool begins = name.starts_with(kMessage) && name.size() > kReceiverAt + kId &&
                      are_digits(name.substr(kMessage.size(), kId)) &&
                      name.substr(kMessage.size() + kId).starts_with(kTo);
  if (!begins || tag == std::string_view::npos || number == std::string_view::npos || number < tag)
    return {};
  const std::size_t begin = tag + kTag.size();
  return fmt::format("{} with tag {} from worker {} to worker {}", name.substr(number + 2),
                     name.substr(begin, number - begin), name.substr(kMessage.size(), kId),
                     name.substr(kReceiverAt, kId));
}

}  // namespace

std::string group_prefix(std::string_view mark, std::uint64_t hash_of_workers) {
  return fmt::format("{}@{:016x}/", mark, hash_of_workers);
}

std::string name_in_group(std::string_view prefix, std::string_view name) {
  return fmt::format("{}{}{}", prefix, kBeforeName, name);
}

std::string name_in_group(std::string_view prefix, std::uint64_t number) {
  return fmt::format("{}{}{}", prefix, kBeforeNumber, number);
}

std::string message_name(std::uint64_t from, std::uint64_t to, std::string_view mark, int tag,
                         std::uint64_t number) {
  return fmt::format("{}{:016x}{}{:016x}{}{}{}{}{}{}", kMessage, from, kTo, to,
                     mark.empty() ? "" : " in ", mark, kTag, tag, kNumber, number);
}

std::string user_name(std::string_view name) {
  if (const std::string message = message_of(name); !message.empty()) return message;
  const std::optional<Parts> parts = parts_of(name);
  if (!parts) return fmt::format("'{}'", name);
  return parts->kind == kBeforeName
             ? fmt::format("'{}' of the group '{}'", parts->call, parts->rule)
             : fmt::format("#{} of the group '{}'", parts->call, parts->rule);
}

std::string row_name(std::string_view name) {
  if (!message_of(name).empty()) return std::string(name.substr(0, name.rfind(kNumber)));
  const std::optional<Parts> parts = parts_of(name);
  if (!parts) return std::string(name);
  return parts->kind == kBeforeName ? fmt::format("{} of the group '{}'", parts->call, parts->rule)
                                    : fmt::format("group '{}'", parts->rule);
}

}  // namespace elastic::coordinator
