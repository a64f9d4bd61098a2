#include "rendezvous/server/journal_record.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <utility>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/server/requests_record.hpp"

namespace elastic::rendezvous {

namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
/// The text of a line around its record. Texts inside of a record cannot contain the first: their
/// quotes are escaped.
constexpr std::string_view kBegin = "{\"xxh64\":\"";
constexpr std::string_view kMiddle = "\",\"record\":";
constexpr std::string_view kEnd = "}";
constexpr std::size_t kSumDigits = 16;
constexpr std::size_t kRecordAt = kBegin.size() + kSumDigits + kMiddle.size();
/// The limit of a start, a floor or requests: more is not even parsed. Views have the bounds of
/// messages.
constexpr std::size_t kMostSmallBytes = 1 << 20;

/// Later ones are counted on from there, so a greater one would leave none.
constexpr std::uint64_t kMostGenerations = std::uint64_t{1} << 62;

std::string checksum(std::string_view record) {
  std::array<char, kSumDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(XXH64(record.data(), record.size(), 0)));
  return {digits.data(), kSumDigits};
}

std::string record_of(const JournalStart& start) {
  const Json json{{"type", "journal"}, {"version", kVersion}, {"job", start.job}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string record_of(const JournalFloor& floor) {
  return Json{{"type", "floor"}, {"generation", floor.generation}}.dump();
}
std::string record_of(const View& view) {
  return encode(Announce{std::make_shared<const View>(view)});
}
std::string record_of(const PendingRequests& requests) {
  return requests_record(requests);
}
std::string record_of(const LastWord& end) {
  return std::visit([](const auto& word) { return encode(word); }, end);
}

/// The record's bytes in a line without its end; nothing where the line is not whole.
std::optional<std::string_view> take_record(std::string_view line) {
  if (line.size() < kRecordAt + kEnd.size() || line.size() > kRecordAt + kMaxMessageBytes + 1) {
    return {};
  }
  const std::string_view sum = line.substr(kBegin.size(), kSumDigits);
  const std::string_view middle = line.substr(kBegin.size() + kSumDigits, kMiddle.size());
  std::string_view record = line.substr(kRecordAt);
  if (!line.starts_with(kBegin) || middle != kMiddle || !line.ends_with(kEnd)) return {};
  record.remove_suffix(kEnd.size());
  if (sum != checksum(record)) return {};
  return record;
}

Status wrong(std::size_t line, const std::string& what) {
  return Status(Code::kInvalidArgument, "line " + std::to_string(line) + " " + what);
}

/// The fields of a start or a floor. Their checksums fit, so what is odd here was written so.
Status check_start(const Json& json, const std::string& job) {
  const auto version = json.find("version");
  const auto name = json.find("job");
  if (version == json.end() || name == json.end() || !name->is_string()) {
    return wrong(1, "names no version or no job");
  }
  if (*version != kVersion) {
    return wrong(1, "says that this journal is of version " + version->dump() +
                        ", this release reads version " + std::to_string(kVersion));
  }
  if (*name == job) return {};
  return wrong(1, "says that this is the journal of job '" + name->get<std::string>() +
                      "', not of job '" + job + "'");
}

/// Reads the lines of one journal from the front.
class Reader {
 public:
  Reader(std::string_view text, const std::string& job) : text_(text), job_(job) {}

  Result<ParsedJournal> read() {
    while (parsed_.whole_bytes < text_.size()) {
      const std::string_view rest = text_.substr(parsed_.whole_bytes);
      const std::size_t end = rest.find('\n');
      const std::optional<std::string_view> record = take_record(rest.substr(0, end));
      ++line_;
      if (!record || end == std::string_view::npos) return tail(rest);
      if (Status taken = take(*record); !taken.ok()) return taken;
      parsed_.whole_bytes += end + 1;
    }
    return std::move(parsed_);
  }

 private:
  Status take(std::string_view record) {
    if (line_ > 1) {
      // By far most records are views, which `decode` bounds and checks.
      const Result<Message> message = decode(record);
      if (message.ok()) {
        return take(message.value());
      }
    }
    const bool small = record.size() <= kMostSmallBytes;
    const Json json = small ? Json::parse(record, nullptr, false) : Json();
    if (!json.is_object() || !json.contains("type")) return wrong(line_, "has no record in it");
    if ((json["type"] == "journal") != (line_ == 1)) {
      return wrong(line_, line_ == 1 ? "does not begin a journal" : "begins another journal");
    }
    parsed_.contents.begun = true;
    if (line_ == 1) return check_start(json, job_);
    if (json["type"] == kRequestsType) return take_requests(record);
    const auto generation = json.find("generation");
    if (json["type"] != "floor" || generation == json.end() || !generation->is_number_unsigned()) {
      return wrong(line_, "has a record that this release does not know");
    }
    return raise(generation->get<std::uint64_t>());
  }

  Status take_requests(std::string_view record) {
    std::optional<PendingRequests> requests = parse_requests(record);
    if (!requests) return wrong(line_, "has requests that this release does not know");
    parsed_.contents.requests = *std::move(requests);
    return {};
  }

  Status take(const Message& message) {
    JournalContents& contents = parsed_.contents;
    if (const auto* announce = std::get_if<Announce>(&message)) {
      contents.view = *announce->view;
      contents.end.reset();
      return raise(announce->view->generation);
    }
    if (const auto* farewell = std::get_if<Farewell>(&message)) {
      contents.end = *farewell;
    } else if (const auto* fail = std::get_if<Fail>(&message)) {
      contents.end = *fail;
    } else {
      return wrong(line_, "has a record that belongs in no journal");
    }
    contents.requests = {};
    return {};
  }

  Status raise(std::uint64_t generation) {
    if (generation > kMostGenerations) {
      return wrong(line_,
                   "has generation " + std::to_string(generation) + ", which no job reaches");
    }
    parsed_.contents.floor = std::max(parsed_.contents.floor, generation);
    return {};
  }

  /// The meaning of an incomplete line: it is the last, or the journal is damaged.
  Result<ParsedJournal> tail(std::string_view rest) {
    if (line_ == 1 && !begins_a_line(rest)) {
      return Status(Code::kInvalidArgument, "this is no journal of elastic");
    }
    if (rest.find(kBegin, 1) != std::string_view::npos) {
      return wrong(line_,
                   "is damaged, and it is not the last, which a crash could have cut short: its "
                   "disk or another program has changed it; restore it from a copy");
    }
    parsed_.contents.torn = true;
    return std::move(parsed_);
  }

  /// Whether a first line that has no end yet may become one of ours: nothing else is cut off.
  static bool begins_a_line(std::string_view rest) {
    const std::size_t known = std::min(rest.size(), kBegin.size());
    return rest.find('\n') == std::string_view::npos &&
           rest.substr(0, known) == kBegin.substr(0, known);
  }

  const std::string_view text_;
  const std::string& job_;
  ParsedJournal parsed_;
  std::size_t line_ = 0;
};

}  // namespace

JournalContents JournalContents::with(const View& next) const {
  JournalContents result = *this;
  result.view = next;
  result.end.reset();
  result.floor = std::max(floor, next.generation);
  return result;
}
JournalContents JournalContents::with_floor(std::uint64_t generation) const {
  JournalContents result = *this;
  result.floor = std::max(floor, generation);
  return result;
}
JournalContents JournalContents::with_requests(const PendingRequests& next) const {
  JournalContents result = *this;
  result.requests = next;
  return result;
}
JournalContents JournalContents::with_end(const LastWord& word) const {
  JournalContents result = *this;
  result.requests = {};
  result.end = word;
  return result;
}

std::string journal_line(const JournalRecord& record) {
  const std::string text = std::visit([](const auto& r) { return record_of(r); }, record);
  std::string line(kBegin);
  line += checksum(text);
  line += kMiddle;
  line += text;
  line += kEnd;
  line += '\n';
  return line;
}

std::string journal_text(const std::string& job, const JournalContents& contents) {
  std::string text = journal_line(JournalStart{job});
  if (contents.floor > 0) text += journal_line(JournalFloor{contents.floor});
  if (contents.view) text += journal_line(*contents.view);
  if (!contents.requests.empty()) text += journal_line(contents.requests);
  if (contents.end) text += journal_line(*contents.end);
  return text;
}

Result<ParsedJournal> parse_journal(std::string_view text, const std::string& job) {
  const std::size_t last = text.find_last_not_of('\0');
  if (last == std::string_view::npos && !text.empty()) {
    return Status(Code::kInvalidArgument, "there are only zero bytes in it: what it said is lost");
  }
  return Reader(text.substr(0, last == std::string_view::npos ? 0 : last + 1), job).read();
}

}  // namespace elastic::rendezvous
