#include <gmock/gmock.h>

#include "benchmarks/command_line.hpp"
#include "benchmarks/job/program_files.hpp"
#include "benchmarks/join/join_log.hpp"

namespace elastic::bench {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMillisecond = 1'000'000;

// Two members and a joiner.
std::vector<JoinRecord> three_workers() {
  return {{false,
           {0, 5 * kMillisecond},
           7 * kMillisecond,
           {{100 * kMillisecond, 110 * kMillisecond}, {200 * kMillisecond, 204 * kMillisecond}}},
          {false,
           {0, 6 * kMillisecond},
           9 * kMillisecond,
           {{101 * kMillisecond, 112 * kMillisecond}, {199 * kMillisecond, 203 * kMillisecond}}},
          {true,
           {20 * kMillisecond, 50 * kMillisecond},
           90 * kMillisecond,
           {{100 * kMillisecond, 111 * kMillisecond}, {200 * kMillisecond, 205 * kMillisecond}}}};
}

TEST(JoinTime, IsThatOfTheMembersAndOfTheJoiner) {
  const auto time = join_time(three_workers(), 3);
  ASSERT_TRUE(time.ok()) << time.status().message();
  EXPECT_DOUBLE_EQ(time.value().gap_ms, 9);
  EXPECT_DOUBLE_EQ(time.value().join_ms, 30);
  EXPECT_DOUBLE_EQ(time.value().broadcast_ms, (12.0 + 6.0) / 2);
}

TEST(JoinTime, RefusesARunWithoutItsJoiner) {
  auto records = three_workers();
  EXPECT_THAT(join_time(records, 4).status().message(), HasSubstr("expected 4"));
  records[2].joiner = false;
  EXPECT_THAT(join_time(records, 3).status().message(), HasSubstr("0 of them joiners"));
  records = three_workers();
  records[1].broadcasts.pop_back();
  EXPECT_THAT(join_time(records, 3).status().message(), HasSubstr("different numbers"));
}

TEST(JoinLog, ComesBackAsWritten) {
  ScratchFolder folder;
  ASSERT_TRUE(ScratchFolder::make(folder).ok());
  const JoinRecord record = three_workers().back();
  ASSERT_TRUE(write_join(own_join_file(folder.path()), record).ok());
  EXPECT_EQ(read_joins(folder.path()).value(), std::vector<JoinRecord>{record});
}

TEST(JoinCommandLine, WorkersGetWhatTheRunSays) {
  const auto read =
      parse_command_line({"join", "--np", "3", "--state-bytes", "64K", "--runs", "2"});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto& options = std::get<JoinOptions>(read.value());
  EXPECT_EQ(options.np, 3);
  EXPECT_EQ(options.state_bytes, 65536U);
  EXPECT_EQ(options.runs, 2);
  const auto again = parse_command_line(worker_arguments(JoinWorkerOptions{
      .np = 3, .state_bytes = 4096, .transport = "tcp", .folder = "/x", .job = "j"}));
  ASSERT_TRUE(again.ok()) << again.status().message();
  const auto& worker = std::get<JoinWorkerOptions>(again.value());
  EXPECT_EQ(worker.np, 3);
  EXPECT_EQ(worker.state_bytes, 4096U);
  EXPECT_EQ(worker.transport, "tcp");
  EXPECT_EQ(worker.folder, "/x");
  EXPECT_EQ(worker.job, "j");
  EXPECT_THAT(parse_command_line({"join", "--state-bytes", "3"}).status().message(),
              HasSubstr("--state-bytes"));
}

}  // namespace
}  // namespace elastic::bench
