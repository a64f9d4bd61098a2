#include "collectives/transport/link_greeting.hpp"

#include <charconv>
#include <string_view>
#include <vector>

namespace elastic::transport {

namespace {

// One field per line, in the order of the struct.
constexpr std::size_t kFields = 11;
constexpr std::size_t kMostStreams = 64;

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string encode(const LinkGreeting& greeting) {
  std::string text;
  for (const std::string& field :
       {greeting.job, greeting.dialer, greeting.acceptor, greeting.transport, greeting.link_id,
        std::to_string(greeting.lane), std::to_string(greeting.stream),
        std::to_string(greeting.streams), std::to_string(greeting.generation), greeting.target,
        greeting.via}) {
    text += field;
    text += '\n';
  }
  return text;
}

Result<LinkGreeting> decode_greeting(const std::string& text) {
  std::vector<std::string> fields;
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    fields.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  LinkGreeting greeting;
  if (fields.size() != kFields || start != text.size() || !parse(fields[5], greeting.lane) ||
      !parse(fields[6], greeting.stream) || !parse(fields[7], greeting.streams) ||
      !parse(fields[8], greeting.generation) || greeting.streams > kMostStreams ||
      greeting.stream >= greeting.streams) {
    return Status(Code::kProtocol, "a data connection with a greeting that makes no sense");
  }
  greeting.job = fields[0];
  greeting.dialer = fields[1];
  greeting.acceptor = fields[2];
  greeting.transport = fields[3];
  greeting.link_id = fields[4];
  greeting.target = fields[9];
  greeting.via = fields[10];
  return greeting;
}

Status judge(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWelcome:
      return {};
    case Verdict::kOldGeneration:
      return Status(Code::kAborted, "it is in a later view already");
    case Verdict::kNoRelay:
      return Status(Code::kRefused, "it does not relay to that worker");
    case Verdict::kUnreachable:
      return Status(Code::kRefused, "it does not reach that worker either");
  }
  return Status(Code::kRefused, "it refused the connection");
}

}  // namespace elastic::transport
