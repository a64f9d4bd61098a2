#include "rendezvous/server/journal_record.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <rapidcheck.h>
#include <string>
#include <vector>
#include <xxhash.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/protocol/codec.hpp"
#include "tests/slowness.hpp"

namespace elastic::rendezvous {
namespace {

using ::testing::HasSubstr;

const std::string kJob = "digits \"at\" \n home";

View view_of(std::uint64_t generation, std::size_t members = 2) {
  View view;
  view.generation = generation;
  view.cause = "worker w0 died: {\"xxh64\":\"";
  view.lanes.resize(2);
  for (std::size_t i = 0; i < members; ++i) {
    view.members.push_back(
        {"w" + std::to_string(i), {"host", {"127.0.0.1:1"}, "local"}, 7, "", true});
  }
  return view;
}

PendingRequests requests_of(std::size_t hosts, const std::string& name = "a \"host\" \n") {
  PendingRequests requests{hosts % 2 == 0, hosts == 2, {"w0", "w1"}, {}};
  for (std::size_t i = 0; i < hosts; ++i) {
    requests.limits.push_back({name, static_cast<int>(i), 7, 1'700'000'000'000, -1, i == 0});
  }
  return requests;
}

/// The lines of a journal, and what it says after each of them.
struct Example {
  std::vector<std::string> lines{journal_line(JournalStart{kJob})};
  std::vector<JournalContents> contents{{}};

  void add(const View& view) {
    JournalContents next = contents.back();
    next.view = view;
    next.end.reset();
    next.floor = std::max(next.floor, view.generation);
    add(journal_line(view), next);
  }
  void add(std::uint64_t floor) {
    JournalContents next = contents.back();
    next.floor = std::max(next.floor, floor);
    add(journal_line(JournalFloor{floor}), next);
  }
  void add(const PendingRequests& requests) {
    JournalContents next = contents.back();
    next.requests = requests;
    add(journal_line(requests), next);
  }
  void add(const LastWord& end) {
    JournalContents next = contents.back();
    next.end = end;
    next.requests = {};
    add(journal_line(end), next);
  }
  void add(const std::string& line, const JournalContents& next) {
    lines.push_back(line);
    contents.push_back(next);
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : lines) all += line;
    return all;
  }
};

Example example() {
  Example made;
  made.add(view_of(1));
  made.add(9);
  made.add(view_of(10, 3));
  made.add(requests_of(2));
  made.add(Farewell{Farewell::Reason::kDone, "the job is done"});
  made.add(view_of(11, 1));
  made.add(Fail{"all members are gone", false});
  made.add(view_of(12));
  made.add(requests_of(0));
  made.add(requests_of(1));
  return made;
}

std::string end_of(const JournalContents& contents) {
  return contents.end ? journal_line(*contents.end) : "";
}

::testing::AssertionResult says(const std::string& text, const JournalContents& expected,
                                bool torn) {
  const Result<ParsedJournal> parsed = parse_journal(text, kJob);
  if (!parsed.ok()) return ::testing::AssertionFailure() << parsed.status().message();
  const JournalContents& contents = parsed.value().contents;
  if (contents.view != expected.view) return ::testing::AssertionFailure() << "another view";
  if (contents.floor != expected.floor) {
    return ::testing::AssertionFailure()
           << "floor " << contents.floor << ", not " << expected.floor;
  }
  if (end_of(contents) != end_of(expected)) {
    return ::testing::AssertionFailure() << "end: " << end_of(contents);
  }
  if (contents.requests != expected.requests) return ::testing::AssertionFailure() << "requests";
  if (contents.torn != torn) return ::testing::AssertionFailure() << "torn: " << contents.torn;
  return ::testing::AssertionSuccess();
}

std::string complaint(const std::string& text) {
  const Result<ParsedJournal> parsed = parse_journal(text, kJob);
  EXPECT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument);
  return parsed.status().message();
}

TEST(JournalRecord, TheLastViewAndTheGreatestGenerationCount) {
  const Example journal = example();
  EXPECT_TRUE(says(journal.text(), journal.contents.back(), false));
  EXPECT_EQ(journal.contents.back().floor, 12U);
  EXPECT_EQ(parse_journal(journal.text(), kJob).value().whole_bytes, journal.text().size());
}

TEST(JournalRecord, AnEmptyJournalSaysNothing) {
  EXPECT_TRUE(says("", {}, false));
  EXPECT_TRUE(says(journal_text(kJob, {}), {}, false));
  EXPECT_TRUE(parse_journal("", kJob).value().contents.empty());
}

TEST(JournalRecord, WhereverItIsCutTheWholeRecordsCount) {
  const Example journal = example();
  const std::string text = journal.text();
  std::size_t whole = 0;
  std::size_t whole_bytes = 0;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    if (whole < journal.lines.size() && cut == whole_bytes + journal.lines[whole].size()) {
      whole_bytes = cut;
      ++whole;
    }
    const JournalContents expected = whole == 0 ? JournalContents{} : journal.contents[whole - 1];
    const std::string rest = text.substr(0, cut);
    ASSERT_TRUE(says(rest, expected, cut != whole_bytes)) << "cut at " << cut;
    ASSERT_EQ(parse_journal(rest, kJob).value().whole_bytes, whole_bytes);
    if (cut == 0 || cut % kSlowness != 0) continue;
    ASSERT_TRUE(says(rest + std::string(5000, '\0'), expected, cut != whole_bytes)) << cut;
  }
}

TEST(JournalRecord, AFlippedBitInTheLastRecordTearsItOff) {
  const Example journal = example();
  const std::string text = journal.text();
  const std::size_t last = text.size() - journal.lines.back().size();
  const JournalContents& before = journal.contents[journal.contents.size() - 2];
  for (std::size_t bit = last * 8; bit < text.size() * 8; bit += kSlowness) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_TRUE(says(damaged, before, true)) << "bit " << bit;
  }
}

TEST(JournalRecord, AFlippedBitBeforeTheLastRecordIsAnErrorThatNamesTheLine) {
  const Example journal = example();
  const std::string text = journal.text();
  const std::size_t last = text.size() - journal.lines.back().size();
  constexpr std::size_t kStep = kSlowness > 1 ? 97 : 7;  // odd: every bit of a byte has its turn
  for (std::size_t bit = 0; bit < last * 8; bit += kStep) {
    const std::size_t at = bit / 8;
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (bit % 8)));
    const std::string said = complaint(damaged);
    ASSERT_FALSE(said.empty()) << at;
    const auto lines_before = std::count(text.data(), text.data() + at, '\n');
    if (lines_before == 0) continue;
    ASSERT_THAT(said, HasSubstr("line " + std::to_string(lines_before + 1) + " is damaged")) << at;
  }
}

TEST(JournalRecord, WhatIsNoJournalIsLeftAlone) {
  EXPECT_THAT(complaint("all: test\n"), HasSubstr("no journal"));
  EXPECT_THAT(complaint("all"), HasSubstr("no journal"));
  EXPECT_THAT(complaint("{\"xxh64\":\"none\"}\n"), HasSubstr("no journal"));
  EXPECT_THAT(complaint(std::string(4096, '\0')), HasSubstr("only zero bytes"));
  EXPECT_THAT(complaint(std::string(4096, '\0') + "x"), HasSubstr("no journal"));
  EXPECT_THAT(complaint(journal_line(view_of(1))), HasSubstr("line 1 does not begin a journal"));
}

/// A line whose checksum fits, whatever the record is.
std::string line_of(const std::string& record) {
  std::array<char, 17> sum{};
  std::snprintf(sum.data(), sum.size(), "%016llx",
                static_cast<unsigned long long>(XXH64(record.data(), record.size(), 0)));
  return std::string("{\"xxh64\":\"") + sum.data() + "\",\"record\":" + record + "}\n";
}

TEST(JournalRecord, AnotherJobsOrVersionsJournalIsRefused) {
  EXPECT_THAT(complaint(journal_line(JournalStart{"other"})),
              HasSubstr("of job 'other', not of job '" + kJob));
  EXPECT_THAT(complaint(line_of(R"({"type":"journal","version":2,"job":"j"})")),
              HasSubstr("is of version 2, this release reads version 1"));
  EXPECT_THAT(complaint(line_of(R"({"type":"journal","version":1})")), HasSubstr("no job"));
}

TEST(JournalRecord, WholeRecordsThatMakeNoSenseAreErrors) {
  const std::string start = journal_line(JournalStart{kJob});
  EXPECT_THAT(complaint(start + start), HasSubstr("line 2 begins another journal"));
  EXPECT_THAT(complaint(start + line_of(R"({"type":"heartbeat"})")), HasSubstr("line 2 has a rec"));
  EXPECT_THAT(complaint(start + line_of(R"({"type":"floor","generation":-1})")),
              HasSubstr("does not know"));
  EXPECT_THAT(complaint(start + line_of(R"({"type":"vote"})")), HasSubstr("does not know"));
  for (const std::size_t depth : {1000U, 1000000U}) {
    EXPECT_THAT(complaint(start + line_of(std::string(depth, '['))), HasSubstr("no record in it"));
  }
}

TEST(JournalRecord, AGenerationThatLeavesNoneAfterItIsAnError) {
  const std::string start = journal_line(JournalStart{kJob});
  constexpr std::uint64_t kLast = std::uint64_t{1} << 62;
  EXPECT_TRUE(parse_journal(start + journal_line(JournalFloor{kLast}), kJob).ok());
  for (const std::uint64_t generation : {kLast + 1, ~std::uint64_t{0}}) {
    const std::string said = "line 2 has generation " + std::to_string(generation);
    EXPECT_THAT(complaint(start + journal_line(JournalFloor{generation})), HasSubstr(said));
    EXPECT_THAT(complaint(start + journal_line(view_of(generation))), HasSubstr(said));
  }
}

TEST(JournalRecord, AViewThatNoMessageCouldCarryIsNoRecord) {
  View huge = view_of(2);
  huge.cause.assign(kMaxMessageBytes, 'x');
  const std::string start = journal_line(JournalStart{kJob});
  EXPECT_TRUE(says(start + journal_line(huge), {}, true));
  EXPECT_THAT(complaint(start + journal_line(huge) + journal_line(view_of(3))),
              HasSubstr("line 2 is damaged"));
}

TEST(JournalRecord, RandomJournalsComeBack) {
  const auto holds = [] {
    const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    Example journal;
    for (const std::uint64_t drawn : *rc::gen::arbitrary<std::vector<std::uint64_t>>()) {
      const std::uint64_t generation = drawn >> 2U;
      if (*rc::gen::arbitrary<bool>()) {
        journal.add(generation);
        continue;
      }
      if (*rc::gen::arbitrary<bool>()) {
        journal.add(requests_of(*rc::gen::inRange<std::size_t>(0, 4), *text));
        continue;
      }
      View view = view_of(generation, *rc::gen::inRange<std::size_t>(0, 5));
      view.cause = *text;
      for (Member& member : view.members) member.label = *text;
      journal.add(view);
    }
    RC_ASSERT(says(journal.text(), journal.contents.back(), false));
    // Rewritten, it says the same.
    RC_ASSERT(says(journal_text(kJob, journal.contents.back()), journal.contents.back(), false));
    const std::size_t whole = *rc::gen::inRange<std::size_t>(0, journal.lines.size());
    std::string cut;
    for (std::size_t i = 0; i < whole; ++i) cut += journal.lines[i];
    cut += journal.lines[whole].substr(
        0, *rc::gen::inRange<std::size_t>(1, journal.lines[whole].size()));
    RC_ASSERT(says(cut, whole == 0 ? JournalContents{} : journal.contents[whole - 1], true));
  };
  EXPECT_TRUE(rc::check("what was written is read, up to the cut", holds));
}

}  // namespace
}  // namespace elastic::rendezvous
