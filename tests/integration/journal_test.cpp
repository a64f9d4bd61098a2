// The journal on real files and on real full disks.
#include "rendezvous/server/journal.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "integration/tiny_disk.hpp"

namespace elastic::rendezvous {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob = "digits";
constexpr std::size_t kKiB = 1024;

/// A line of about `bytes`.
View view_of(std::uint64_t generation, std::size_t bytes = 1000) {
  View view;
  view.generation = generation;
  view.lanes.resize(2);
  view.cause.assign(bytes, 'c');
  return view;
}

class JournalTest : public ::testing::Test {
 protected:
  std::string path() const { return (scratch_.path() / "journal").string(); }

  static OpenedJournal open(const std::string& path) {
    Result<OpenedJournal> opened = open_journal(path, kJob);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(opened).value() : OpenedJournal{};
  }
  static Status failure(const std::string& path) { return open_journal(path, kJob).status(); }

  testing::ScratchFolder scratch_;
};

TEST_F(JournalTest, WhatWasAppendedIsThereAfterTheServerIsGone) {
  {
    const OpenedJournal journal = open(path());
    EXPECT_TRUE(journal.contents.empty());
    ASSERT_TRUE(journal.sink->append(view_of(1)).ok());
    ASSERT_TRUE(journal.sink->append(view_of(2)).ok());
    ASSERT_TRUE(journal.sink->append_floor(7).ok());
  }
  for (int restart = 0; restart < 3; ++restart) {
    const OpenedJournal journal = open(path());
    EXPECT_EQ(journal.contents.view, view_of(2));
    EXPECT_EQ(journal.contents.floor, 7U);
    EXPECT_FALSE(journal.contents.torn);
  }
}

TEST_F(JournalTest, ItsNameIsKeptThroughALink) {
  std::filesystem::create_symlink("journal", scratch_.path() / "link");
  ASSERT_TRUE(open((scratch_.path() / "link").string()).sink->append(view_of(1)).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(scratch_.path() / "link"));
  EXPECT_EQ(open(path()).contents.floor, 1U);
}

TEST_F(JournalTest, ATornTailIsCutOffBeforeMoreIsWritten) {
  std::ofstream(path()) << journal_text(kJob, {view_of(1), 1, false})
                        << journal_line(view_of(2)).substr(0, 900);
  {
    const OpenedJournal journal = open(path());
    EXPECT_TRUE(journal.contents.torn);
    EXPECT_EQ(journal.contents.floor, 1U);
    ASSERT_TRUE(journal.sink->append_floor(2).ok());
  }
  const OpenedJournal journal = open(path());
  EXPECT_FALSE(journal.contents.torn);
  EXPECT_EQ(journal.contents.floor, 2U);
  EXPECT_EQ(journal.contents.view, view_of(1));
}

TEST_F(JournalTest, ASecondServerIsRefused) {
  const OpenedJournal first = open(path());
  ASSERT_TRUE(first.sink->append(view_of(1)).ok());
  const Status second = failure(path());
  EXPECT_EQ(second.code(), Code::kUnavailable);
  EXPECT_THAT(second.message(), HasSubstr(path()));
  EXPECT_THAT(second.message(), HasSubstr("another server has it open"));
}

TEST_F(JournalTest, DamageNamesTheFileAndTheLine) {
  std::string text = journal_text(kJob, {view_of(1), 1, false}) + journal_line(view_of(2));
  text[text.find("ccc")] = 'd';
  std::ofstream(path()) << text;
  const Status damaged = failure(path());
  EXPECT_EQ(damaged.code(), Code::kInvalidArgument);
  EXPECT_THAT(damaged.message(), HasSubstr(path() + ": line 3 is damaged"));
  EXPECT_THAT(damaged.message(), HasSubstr("move the file away"));
  EXPECT_EQ(testing::read_file(path()), text);
}

TEST_F(JournalTest, AFileThatIsNoJournalIsNotTouched) {
  std::ofstream(path()) << "my thesis\n";
  EXPECT_THAT(failure(path()).message(), HasSubstr(path() + ": this is no journal"));
  EXPECT_EQ(testing::read_file(path()), "my thesis\n");
  EXPECT_THAT(failure(scratch_.path().string()).message(), HasSubstr("irectory"));
  EXPECT_THAT(failure("/dev/null").message(), HasSubstr("no regular file"));
  EXPECT_THAT(failure(path() + ".d/journal").message(), HasSubstr("No such file"));
  std::filesystem::resize_file(path(), std::uintmax_t{1} << 30);
  EXPECT_THAT(failure(path()).message(), HasSubstr("no journal"));
}

TEST_F(JournalTest, StaysSmall) {
  const OpenedJournal journal = open(path());
  std::uintmax_t largest = 0;
  for (std::uint64_t generation = 1; generation <= 400; ++generation) {
    ASSERT_TRUE(journal.sink->append(view_of(generation, 8 * kKiB)).ok());
    largest = std::max(largest, std::filesystem::file_size(path()));
  }
  EXPECT_LT(largest, 2048 * kKiB);
  const auto parsed = parse_journal(testing::read_file(path()), kJob);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().contents.view, view_of(400, 8 * kKiB));
}

TEST_F(JournalTest, MembersDeathsFitOnAFullDiskForEver) {
  testing::TinyDisk disk(1024 * kKiB);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string path = (disk.path() / "journal").string();
  OpenedJournal journal = open(path);
  ASSERT_TRUE(journal.sink->append(view_of(1)).ok());
  ASSERT_TRUE(journal.sink->room().ok());
  disk.fill();
  std::uint64_t generation = 1;
  // Ten times what was reserved.
  for (; generation < 5000; ++generation) {
    const Status kept = journal.sink->append(view_of(generation + 1));
    ASSERT_TRUE(kept.ok()) << generation << ": " << kept.message();
    disk.fill();
    if (generation != 10) continue;
    const Status room = journal.sink->room();
    EXPECT_EQ(room.code(), Code::kUnavailable);
    EXPECT_THAT(room.message(), HasSubstr("the journal's disk is full: " + path));
  }
  disk.make_room();
  EXPECT_TRUE(journal.sink->room().ok());
  journal.sink.reset();
  EXPECT_EQ(open(path).contents.floor, generation);
}

TEST_F(JournalTest, AnAppendThatFoundNoRoomMayBeTriedAgain) {
  testing::TinyDisk disk(24 * kKiB);  // too little for a spare
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string path = (disk.path() / "journal").string();
  OpenedJournal journal = open(path);
  EXPECT_EQ(journal.sink->room().code(), Code::kUnavailable);
  std::uint64_t kept = 0;
  while (journal.sink->append(view_of(kept + 1)).ok()) ++kept;
  EXPECT_GT(kept, 5U);
  const auto parsed = parse_journal(testing::read_file(path), kJob);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().contents.floor, kept);
  EXPECT_FALSE(parsed.value().contents.torn);
  const Status again = journal.sink->append(view_of(kept + 1));
  EXPECT_EQ(again.code(), Code::kUnavailable);
  EXPECT_THAT(again.message(), HasSubstr("the journal's disk is full: " + path));
  disk.grow(1024 * kKiB);
  ASSERT_TRUE(journal.sink->append(view_of(kept + 1)).ok());
  EXPECT_TRUE(journal.sink->room().ok());
  journal.sink.reset();
  EXPECT_EQ(open(path).contents.view, view_of(kept + 1));
}

TEST_F(JournalTest, OpensOnAFullDiskWhereThereIsAJournal) {
  testing::TinyDisk disk(64 * kKiB);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string path = (disk.path() / "journal").string();
  std::ofstream(path) << journal_text(kJob, {view_of(3), 3, false})
                      << journal_line(view_of(4)).substr(0, 900);
  disk.fill();
  {
    const OpenedJournal journal = open(path);
    EXPECT_TRUE(journal.contents.torn);
    EXPECT_EQ(journal.sink->room().code(), Code::kUnavailable);
    ASSERT_TRUE(journal.sink->append_floor(4).ok());
  }
  EXPECT_EQ(open(path).contents.floor, 4U);
  EXPECT_FALSE(open(path).contents.torn);
  const Status none = failure((disk.path() / "new").string());
  EXPECT_EQ(none.code(), Code::kUnavailable);
  EXPECT_THAT(none.message(), HasSubstr("disk is full"));
}

}  // namespace
}  // namespace elastic::rendezvous
