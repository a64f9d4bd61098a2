// The timelines that the workers of a real job write.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/launched_job.hpp"
#include "integration/timeline_files.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr milliseconds kDeadline = milliseconds(60000) * kHangFactor;

class TimelineTest : public ::testing::Test {
 protected:
  /// Runs traced_steps on `ranks` workers, to its end. \returns elasticrun's exit status.
  std::optional<int> run(int ranks, const std::vector<std::string>& arguments,
                         const std::string& path) {
    std::vector<std::string> command{
        "-np", std::to_string(ranks), "--min-np", "1", "--max-restarts", "0", TRACED_STEPS};
    command.insert(command.end(), arguments.begin(), arguments.end());
    job_.start(command, {"ELASTIC_TIMELINE=" + path});
    return job_.launcher().wait(kDeadline);
  }
  std::string path() const { return (job_.folder() / "trace.json").string(); }
  /// The events of tools/timeline_merge for all timelines.
  std::vector<nlohmann::json> merged() const {
    std::vector<std::string> command{TIMELINE_MERGE};
    for (const auto& file : timelines_in(job_.folder())) command.push_back(file.string());
    Job merge(command, job_.folder() / "merged");
    EXPECT_EQ(merge.wait(kDeadline), 0) << merge.output();
    return nlohmann::json::parse(merge.output()).get<std::vector<nlohmann::json>>();
  }

  LaunchedJob job_;
};

TEST_F(TimelineTest, HasEachCollectiveTensorAndStepOfEachRank) {
  constexpr int kSteps = 20;
  ASSERT_EQ(run(3, {std::to_string(kSteps)}, path()), 0) << job_.output();
  const auto files = timelines_in(job_.folder());
  ASSERT_THAT(files, SizeIs(3));
  for (const auto& file : files) {
    const auto events = read_timeline(file);
    EXPECT_THAT(badly_nested(events), IsEmpty());
    // Each step has one small and one large unnamed allreduce, and at least the last bucket.
    std::size_t small = 0;
    std::size_t large = 0;
    std::size_t named = 0;
    for (const auto& slice : slices(events, "allreduce")) {
      const auto& args = slice.at("args");
      EXPECT_EQ(args.at("outcome"), "done");
      EXPECT_EQ(args.at("contributors"), 3) << slice;
      if (!args.contains("lane")) continue;
      small += args.at("lane") == 0 && args.at("bytes") == 4 && args.at("algorithm") == "eager";
      large += args.at("lane") == 0 && args.at("bytes") == 4 << 20 && args.contains("algorithm");
      named += args.at("lane") == 1 && args.contains("first");
    }
    EXPECT_EQ(small, kSteps);
    EXPECT_EQ(large, kSteps);
    EXPECT_GE(named, kSteps);
    EXPECT_THAT(slices(events, "broadcast"), SizeIs(kSteps));
    EXPECT_THAT(slices(events, "barrier"), SizeIs(kSteps));
    EXPECT_THAT(slices(events, "negotiate"), SizeIs(2 * kSteps));
    EXPECT_THAT(slices(events, "queue"), SizeIs(2 * kSteps));
    EXPECT_THAT(slices(events, "step 20"), SizeIs(1));
    std::set<std::string> rows;
    for (const auto& event : events) {
      if (event.at("name") == "thread_name") rows.insert(event.at("args").at("name"));
      EXPECT_FALSE(event.at("args").contains("dropped")) << event;
    }
    EXPECT_TRUE(rows.contains("weights") && rows.contains("bias \"quoted\""));
  }
}

TEST_F(TimelineTest, HasOneRowForTheCallsOfAGroupAndOneForMessages) {
  constexpr int kSteps = 10;
  ASSERT_EQ(run(3, {std::to_string(kSteps), "groups"}, path()), 0) << job_.output();
  int members = 0;
  for (const auto& file : timelines_in(job_.folder())) {
    const auto events = read_timeline(file);
    EXPECT_THAT(badly_nested(events), IsEmpty());
    std::set<std::string> rows;
    for (const auto& event : events) {
      if (event.at("name") == "thread_name") rows.insert(event.at("args").at("name"));
    }
    int in_buckets = 0;
    int of_tensors = 0;
    for (const auto& slice : slices(events, "allreduce")) {
      const auto& args = slice.at("args");
      if (args.at("bytes") != 16 || args.at("contributors") != 2) continue;
      ++(args.contains("lane") ? in_buckets : of_tensors);
    }
    if (rows.contains("in the pair of the group 'ranks 0 and 1'")) {
      ++members;
      EXPECT_THAT(rows, SizeIs(4 + 2 + 3)) << ::testing::PrintToString(rows);
      EXPECT_TRUE(rows.contains("group 'ranks 0 and 1'")) << ::testing::PrintToString(rows);
      EXPECT_EQ(in_buckets, 2 * kSteps);
      EXPECT_EQ(of_tensors, 2 * kSteps);
      EXPECT_THAT(slices(events, "gather"), SizeIs(2 * kSteps));  // the messages
    } else {
      EXPECT_THAT(rows, SizeIs(4 + 2)) << ::testing::PrintToString(rows);
      EXPECT_EQ(in_buckets + of_tensors, 0);
    }
  }
  EXPECT_EQ(members, 2);
}

TEST_F(TimelineTest, ShowsTheDeathOfAWorkerAsAViewChange) {
  ASSERT_EQ(run(3, {"20", "10"}, path()), 0) << job_.output();
  const auto files = timelines_in(job_.folder());
  ASSERT_THAT(files, SizeIs(3));
  int changed = 0;
  int killed = 0;
  for (const auto& file : files) {
    const auto events = read_timeline(file);
    EXPECT_THAT(badly_nested(events), IsEmpty());
    EXPECT_FALSE(slices(events, "step 9").empty()) << file;
    const auto changes = slices(events, "view change");
    killed += changes.empty();
    if (changes.empty()) continue;
    ++changed;
    EXPECT_EQ(changes.front().at("args").at("generation"), 2);
    for (const char* phase : {"freeze", "decide", "link", "install", "replay"}) {
      EXPECT_THAT(slices(events, phase), SizeIs(changes.size())) << phase;
    }
    EXPECT_EQ(slices(events, "allreduce").back().at("args").at("contributors"), 2);
  }
  EXPECT_EQ(changed, 2);
  EXPECT_EQ(killed, 1);
}

TEST_F(TimelineTest, MergesToOneProcessForEachRank) {
  ASSERT_EQ(run(3, {"20", "10"}, path()), 0) << job_.output();
  const auto events = merged();
  EXPECT_FALSE(slices(events, "view change").empty());
  std::set<int> processes;
  std::size_t told = 0;
  for (const auto& event : events) {
    processes.insert(event.at("pid").get<int>());
    if (!event.at("args").contains("last")) continue;
    ++told;
    EXPECT_GE(event.at("args").at("waited_us"), 0);
  }
  EXPECT_EQ(processes, (std::set<int>{0, 1, 2}));
  EXPECT_GE(told, 3U * 9U * 4U) << "of nine whole steps, four unnamed calls on each rank";
}

TEST_F(TimelineTest, APathThatCannotBeWrittenIsAnErrorThatNamesIt) {
  EXPECT_NE(run(1, {"1"}, "/no/such/folder/trace.json"), 0);
  EXPECT_THAT(job_.output(), HasSubstr("cannot write the timeline to /no/such/folder/trace."));
  EXPECT_THAT(job_.output(), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace elastic::testing
