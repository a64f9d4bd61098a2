#include "rendezvous/launcher/notice/notice.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <time.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "rendezvous/protocol/connection.hpp"

namespace elastic::notice {

namespace {

using Json = nlohmann::json;
using Answer = Result<std::optional<Notice>>;

/// GCP and Azure give a machine so long at least, and say no more.
constexpr Milliseconds kHalfAMinute{30000};
/// As EC2 does.
constexpr Milliseconds kTwoMinutes{120000};

/// Clouds give minutes. A later time is no notice, and may be out of the clock's range.
constexpr std::chrono::hours kLongestNotice{24};

constexpr const char* kMetadata = "169.254.169.254:80";

Status invalid(const std::string& message) {
  return Status(Code::kInvalidArgument, message);
}

Status odd(const std::string& source, std::string_view answer) {
  return Status(Code::kProtocol, source + " answers '" + std::string(answer.substr(0, 80)) +
                                     "', which its manual does not have");
}

/// The time from `now` to the one in the text, less than 0 for one in the past; none: that is no
/// time, or too late a one.
std::optional<Milliseconds> time_until(const std::string& text, const char* format, WallTime now) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), format, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const std::chrono::seconds left(::timegm(&parts) - std::chrono::system_clock::to_time_t(now));
  if (left > kLongestNotice) return std::nullopt;
  return left;
}

Notice notice_in(std::string text, Milliseconds left) {
  constexpr Milliseconds kNone{0};
  return {std::move(text), std::max(left, kNone), std::max(-left, kNone)};
}

std::string text_in(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char character) {
    return std::isspace(static_cast<unsigned char>(character)) != 0;
  };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Azure's events that take the machine away or restart it. A "Freeze" takes seconds.
bool ends_machine(const std::string& type) {
  return type == "Preempt" || type == "Terminate" || type == "Reboot" || type == "Redeploy";
}

/// "HOST:PORT" with a port that one can connect to.
bool has_port(const std::string& address) {
  const auto parts = rendezvous::parse_address(address);
  return parts.ok() && std::stoi(parts.value().port) > 0;
}

}  // namespace

Result<NoticeSource> parse_notice_source(const std::string& text) {
  using Kind = NoticeSource::Kind;
  if (text.starts_with("file:") && text.size() > 5)
    return NoticeSource{Kind::kFile, text.substr(5)};
  if (text.starts_with("command:") && text.size() > 8) {
    return NoticeSource{Kind::kCommand, text.substr(8)};
  }
  const auto at = text.find('@');
  const std::string cloud = text.substr(0, at);
  const std::string address = at == std::string::npos ? kMetadata : text.substr(at + 1);
  const std::map<std::string, Kind> clouds{
      {"aws", Kind::kAws}, {"gcp", Kind::kGcp}, {"azure", Kind::kAzure}};
  if (const auto known = clouds.find(cloud); known != clouds.end()) {
    if (has_port(address)) return NoticeSource{known->second, address};
    return invalid("--notice " + text + ": '" + address +
                   "' is not HOST:PORT, with a port from 1 to 65535");
  }
  return invalid("--notice " + text +
                 ": give aws, gcp or azure, each with @HOST:PORT for another metadata service, or "
                 "file:PATH or command:CMD");
}

Answer read_aws(std::string_view answer, WallTime now) {
  const Json json = Json::parse(answer, nullptr, false);
  if (!json.is_object()) return odd("EC2's metadata", answer);
  const std::string action = text_in(json, "action");
  const auto left = time_until(text_in(json, "time"), "%Y-%m-%dT%H:%M:%SZ", now);
  if (action.empty() || !left) return odd("EC2's metadata", answer);
  return std::optional(notice_in("EC2 will " + action + " this machine", *left));
}

Answer read_gcp(std::string_view answer) {
  if (trimmed(answer) == "FALSE") return std::optional<Notice>();
  if (trimmed(answer) != "TRUE") return odd("GCP's metadata", answer);
  return std::optional(notice_in("GCP will preempt this machine", kHalfAMinute));
}

bool is_azure_name(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](unsigned char character) {
           return std::isalnum(character) != 0 || character == '-' || character == '_' ||
                  character == '.';
         });
}

Answer read_azure(std::string_view answer, const std::string& machine, WallTime now) {
  const Json json = Json::parse(answer, nullptr, false);
  const auto events = json.is_object() ? json.find("Events") : json.end();
  if (!json.is_object() || events == json.end() || !events->is_array()) {
    return odd("Azure's metadata", answer);
  }
  std::optional<Notice> first;
  for (const Json& event : *events) {
    if (!event.is_object() || !ends_machine(text_in(event, "EventType"))) continue;
    const Json resources = event.value("Resources", Json::array());
    const bool meant = resources.is_array() &&
                       std::any_of(resources.begin(), resources.end(), [&](const Json& resource) {
                         return resource.is_string() && resource.get<std::string>() == machine;
                       });
    if (!meant) continue;
    const Milliseconds left =
        time_until(text_in(event, "NotBefore"), "%a, %d %b %Y %H:%M:%S GMT", now)
            .value_or(kHalfAMinute);
    if (first && first->left - first->late <= left) continue;
    std::string what = text_in(event, "EventType");
    std::transform(what.begin(), what.end(), what.begin(), [](unsigned char character) {
      return static_cast<char>(std::tolower(character));
    });
    first = notice_in("Azure will " + what + " this machine", left);
  }
  return first;
}

Answer read_seconds(std::string_view answer, const std::string& source) {
  const std::string_view text = trimmed(answer);
  const std::string what = source + " says that this machine is to end";
  if (text.empty()) return std::optional(notice_in(what, kTwoMinutes));
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) {
    return Status(Code::kProtocol, source + " says '" + std::string(text.substr(0, 80)) +
                                       "': it should be a number of seconds, or nothing");
  }
  return std::optional(notice_in(what, std::chrono::seconds(seconds)));
}

}  // namespace elastic::notice
