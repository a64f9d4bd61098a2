// A journal file with anything in it. With an odd first byte the lines get checksums that fit, so
// that what they say is looked at, too.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <xxhash.h>

#include "fuzz/fuzz_input.hpp"
#include "rendezvous/server/journal_record.hpp"

namespace elastic::rendezvous {
namespace {

const std::string kJob = "job";

std::string line_of(std::string_view record) {
  std::array<char, 17> sum{};
  std::snprintf(sum.data(), sum.size(), "%016llx",
                static_cast<unsigned long long>(XXH64(record.data(), record.size(), 0)));
  return std::string("{\"xxh64\":\"") + sum.data() + "\",\"record\":" + std::string(record) + "}\n";
}

std::string with_checksums(std::string_view records) {
  std::string text = journal_line(JournalStart{kJob});
  while (!records.empty()) {
    const std::size_t end = records.find('\n');
    text += line_of(records.substr(0, end));
    records = end == std::string_view::npos ? std::string_view() : records.substr(end + 1);
  }
  return text;
}

ParsedJournal must_parse(const std::string& text) {
  Result<ParsedJournal> parsed = parse_journal(text, kJob);
  fuzz::require(parsed.ok(), "what was written is a journal");
  fuzz::require(!parsed.value().contents.torn, "what was written is whole");
  return std::move(parsed).value();
}

void read_journal(const std::string& text) {
  const Result<ParsedJournal> parsed = parse_journal(text, kJob);
  if (!parsed.ok()) {
    fuzz::require(parsed.status().code() == Code::kInvalidArgument,
                  "failures are kInvalidArgument");
    return;
  }
  const JournalContents& contents = parsed.value().contents;
  const std::size_t whole = parsed.value().whole_bytes;
  fuzz::require(whole <= text.size(), "the end is inside of the file");
  const auto same = [&](const JournalContents& other) {
    return other.view == contents.view && other.floor == contents.floor &&
           other.end.has_value() == contents.end.has_value();
  };
  fuzz::require(same(must_parse(text.substr(0, whole)).contents),
                "without its tail it says the same");
  fuzz::require(same(must_parse(journal_text(kJob, contents)).contents),
                "rewritten, it says the same");
  if (whole == 0) return;
  View next;
  next.generation = 7;
  const ParsedJournal longer = must_parse(text.substr(0, whole) + journal_line(next));
  fuzz::require(longer.contents.view == next, "what is appended is read");
}

}  // namespace
}  // namespace elastic::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace elastic::rendezvous;
  elastic::fuzz::Input input(data, size);
  const bool sums = input.byte() % 2 == 1;
  const std::string_view text = input.text(size);
  read_journal(sums ? with_checksums(text) : std::string(text));
  return 0;
}
