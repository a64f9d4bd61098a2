// The parts of the timeline and of the flight recorder by themselves.
#include <atomic>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/unique_fd.hpp"
#include "timeline/event_ring.hpp"
#include "timeline/flight_recorder.hpp"
#include "timeline/lane_trace.hpp"
#include "timeline/timeline.hpp"

namespace elastic::timeline {
namespace {

using ::testing::HasSubstr;

Event event_at(std::uint64_t position) {
  Event event;
  event.position = position;
  return event;
}

TEST(EventRing, GivesWhatSeveralThreadsPutIntoItEachOnce) {
  EventRing ring;
  constexpr std::uint64_t kEach = 3000;
  std::vector<std::thread> producers;
  for (std::uint64_t which = 0; which < 4; ++which) {
    producers.emplace_back([&ring, which] {
      for (std::uint64_t i = 0; i < kEach; ++i) ring.push(event_at(which * kEach + i));
    });
  }
  std::set<std::uint64_t> found;
  Event event;
  while (found.size() < 4 * kEach) {
    if (!ring.pop(event)) continue;
    EXPECT_TRUE(found.insert(event.position).second) << event.position;
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_FALSE(ring.pop(event));
  EXPECT_EQ(ring.take_dropped(), 0U);
}

TEST(EventRing, CountsWhatItHasNoRoomFor) {
  EventRing ring;
  for (std::uint64_t i = 0; i < EventRing::kSlots + 5; ++i) ring.push(event_at(i));
  EXPECT_EQ(ring.take_dropped(), 5U);
  EXPECT_EQ(ring.take_dropped(), 0U);
  Event event;
  for (std::uint64_t i = 0; i < EventRing::kSlots; ++i) {
    ASSERT_TRUE(ring.pop(event));
    EXPECT_EQ(event.position, i);
  }
  EXPECT_FALSE(ring.pop(event));
  ring.push(event_at(7));
  EXPECT_TRUE(ring.pop(event));
}

OperationRecord record_at(std::uint64_t position) {
  OperationRecord record;
  record.position = position;
  record.generation = 3;
  record.bytes = std::uint64_t{5} << 40U;
  record.kind = 0x11;
  record.tensors = 7;
  record.text = 9;
  record.began = 100;
  return record;
}

TEST(FlightRecorder, HasTheLatestOperationsInTheirOrder) {
  FlightRecorder recorder;
  EXPECT_TRUE(recorder.latest(0).empty());
  for (std::uint64_t i = 0; i < 5000; ++i) {
    recorder.begin(record_at(i));
    recorder.end(Outcome::kDone, 200);
  }
  recorder.begin(record_at(5000));
  const auto latest = recorder.latest(5000);
  ASSERT_EQ(latest.size(), FlightRecorder::kKept);
  EXPECT_EQ(latest.front().position, 5001 - FlightRecorder::kKept);
  EXPECT_EQ(latest.front().outcome, Outcome::kDone);
  EXPECT_EQ(latest.front().ended, 200);
  const OperationRecord& last = latest.back();
  EXPECT_EQ(last.position, 5000U);
  EXPECT_EQ(last.generation, 3U);
  EXPECT_EQ(last.bytes, std::uint64_t{5} << 40U);
  EXPECT_EQ(last.kind, 0x11);
  EXPECT_EQ(last.tensors, 7U);
  EXPECT_EQ(last.text, 9U);
  EXPECT_EQ(last.outcome, Outcome::kOpen);
  EXPECT_EQ(last.ended, 0);
}

TEST(FlightRecorder, HasSmallOperationsInARowAsOne) {
  FlightRecorder recorder;
  for (std::uint64_t i = 0; i < 5000; ++i) recorder.begin_small(i, 1, 1, 8, 100);
  recorder.begin_small(5000, 1, 1, 16, 100);
  recorder.begin_small(5001, 2, 1, 16, 100);
  recorder.begin(record_at(5002));
  recorder.begin_small(5003, 2, 1, 16, 100);
  const auto latest = recorder.latest(5003);
  ASSERT_EQ(latest.size(), 5U);
  EXPECT_EQ(latest[0].position, 0U);
  EXPECT_EQ(latest[0].last, 4999U);
  EXPECT_EQ(latest[0].bytes, 8U);
  EXPECT_EQ(latest[0].outcome, Outcome::kDone);
  EXPECT_TRUE(latest[0].is_small);
  EXPECT_EQ(latest[1].last, 5000U);
  EXPECT_EQ(latest[2].position, 5001U);
  EXPECT_FALSE(latest[3].is_small);
  EXPECT_EQ(latest[4].outcome, Outcome::kOpen);
}

TEST(FlightRecorder, TakesAnInterruptedOperationOutOfItsRow) {
  FlightRecorder recorder;
  for (std::uint64_t i = 0; i < 3; ++i) recorder.begin_small(i, 1, 1, 8, 100);
  recorder.end(Outcome::kInterrupted, 300);
  recorder.begin_small(2, 2, 1, 8, 400);
  recorder.begin_small(3, 2, 1, 8, 400);
  const auto latest = recorder.latest(4);
  ASSERT_EQ(latest.size(), 3U);
  EXPECT_EQ(latest[0].last, 1U);
  EXPECT_EQ(latest[0].outcome, Outcome::kDone);
  EXPECT_EQ(latest[1].position, 2U);
  EXPECT_EQ(latest[1].outcome, Outcome::kInterrupted);
  EXPECT_EQ(latest[1].ended, 300);
  EXPECT_EQ(latest[2].position, 2U);
  EXPECT_EQ(latest[2].last, 3U);
}

/// Readers must not take half of one operation for another: all its fields have the same number.
TEST(FlightRecorder, IsReadWhileItIsWritten) {
  FlightRecorder recorder;
  std::atomic<bool> end{false};
  std::thread owner([&] {
    for (std::uint64_t i = 1; !end; ++i) {
      OperationRecord record;
      record.position = record.generation = record.bytes = i;
      recorder.begin(record);
      recorder.end(Outcome::kDone, static_cast<std::int64_t>(i));
    }
  });
  for (std::size_t seen = 0; seen < 500000;) {
    for (const OperationRecord& record : recorder.latest(0)) {
      ++seen;
      EXPECT_EQ(record.position, record.generation);
      EXPECT_EQ(record.position, record.bytes);
    }
  }
  end = true;
  owner.join();
}

class TimelineFile : public ::testing::Test {
 protected:
  ~TimelineFile() override { std::remove(path_.c_str()); }
  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  const std::string path_ = ::testing::TempDir() + "timeline_test." + std::to_string(::getpid());
  Timeline timeline_;
};

TEST_F(TimelineFile, HasWhatWasRecordedBetweenItsStartAndItsEnd) {
  timeline_.record_member(2, 4, 1);
  timeline_.record_commit(6);
  ASSERT_TRUE(timeline_.start({path_, {}}).ok());
  EXPECT_EQ(timeline_.path(), path_);
  timeline_.record_commit(7);
  timeline_.record_commit(8);
  timeline_.stop();
  timeline_.record_commit(9);
  EXPECT_EQ(timeline_.path(), "");
  EXPECT_THAT(text(), HasSubstr("\"rank 2 on "));
  EXPECT_THAT(text(), HasSubstr("\"step 8\""));
  EXPECT_EQ(text().find("\"step 7\""), std::string::npos) << "its begin is not known";
  EXPECT_EQ(text().find("\"step 9\""), std::string::npos);
  EXPECT_TRUE(text().ends_with("]\n"));
}

TEST_F(TimelineFile, IsOnlyOneAtATimeAndCanBeStartedAgain) {
  ASSERT_TRUE(timeline_.start({path_, {}}).ok());
  const Status second = timeline_.start({path_ + ".second", {}});
  EXPECT_EQ(second.code(), Code::kInvalidArgument);
  EXPECT_THAT(second.message(), HasSubstr(path_ + " already"));
  timeline_.stop();
  EXPECT_TRUE(timeline_.start({path_, {}}).ok());
}

TEST_F(TimelineFile, SaysHowManyEventsWereDropped) {
  ASSERT_TRUE(timeline_.start({path_, {}}).ok());
  // More than the ring holds, and faster than any thread writes them.
  for (std::size_t i = 0; i < 40 * EventRing::kSlots; ++i) timeline_.record(event_at(i));
  timeline_.stop();
  EXPECT_THAT(text(), HasSubstr("events dropped\""));
}

TEST_F(TimelineFile, HasTheOperationsOfALane) {
  LaneTrace lane(&timeline_, 0);
  lane.begin_small(0, 1, 1, 8);
  lane.end_small(2);
  ASSERT_TRUE(timeline_.start({path_, {}}).ok());
  lane.begin_small(1, 1, 1, 8);
  lane.end_small(2);
  lane.begin(2, 1, {.kind = 5});
  lane.packed(0);
  lane.performed(/*on_device=*/false);
  lane.end(Outcome::kInterrupted, 2);
  lane.begin(3, 1, {.kind = 1});
  lane.packed(0);
  lane.performed(/*on_device=*/true);
  lane.end(Outcome::kDone, 2);
  timeline_.stop();
  EXPECT_EQ(text().find("\"position\":0"), std::string::npos);
  EXPECT_THAT(text(), HasSubstr("\"name\":\"allreduce\""));
  EXPECT_THAT(text(), HasSubstr("\"bytes\":8,\"tensors\":1,\"lane\":0,\"position\":1"));
  EXPECT_THAT(text(), HasSubstr("\"contributors\":0,\"backend\":\"native\","
                                "\"outcome\":\"interrupted by a view change\"}"));
  EXPECT_THAT(text(), HasSubstr("\"outcome\":\"done\",\"memory\":\"device\"}"));
  EXPECT_EQ(lane.latest(4).size(), 3U) << "the small ones are one row";
}

/// With a FIFO, `start` would wait for a reader, and `stop` until it reads.
TEST_F(TimelineFile, IsNoFifo) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const Status unread = timeline_.start({path_, {}});
  EXPECT_EQ(unread.code(), Code::kInvalidArgument);
  EXPECT_THAT(unread.message(), HasSubstr(path_ + ": it is a FIFO"));
  EXPECT_THAT(unread.message(), HasSubstr("name a regular file"));
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader);
  EXPECT_EQ(timeline_.start({path_, {}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(timeline_.path(), "");
}

TEST_F(TimelineFile, MayBeACharacterDevice) {
  EXPECT_TRUE(timeline_.start({"/dev/null", {}}).ok());
  timeline_.stop();
  EXPECT_TRUE(timeline_.start({"/dev/full", {}}).ok()) << "it ends with a warning";
}

TEST(Timeline, IsNamedByAFileAndNoFolder) {
  for (const std::string folder : {"/tmp", "/tmp/", "/no/such/folder/", ".", "/tmp/.."}) {
    const Status status = check_timeline_path(folder);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << folder;
    EXPECT_THAT(status.message(), HasSubstr(folder + ": it is a folder; name a file in it"));
  }
  EXPECT_THAT(check_timeline_path("/tmp/").message(), HasSubstr("such as /tmp/trace.json"));
  EXPECT_EQ(check_timeline_path("").code(), Code::kInvalidArgument);
  EXPECT_TRUE(check_timeline_path("trace.json").ok());
  EXPECT_TRUE(check_timeline_path("/no/such/folder/trace").ok()) << "the file's name is right";
}

TEST(Timeline, PathsOfWorkersKeepTheEnding) {
  EXPECT_EQ(path_of_worker("trace.json", 0xab), "trace.00000000000000ab.json");
  EXPECT_EQ(path_of_worker("/a.b/trace", 0xab), "/a.b/trace.00000000000000ab.json");
  EXPECT_EQ(path_of_worker("/a.b/.trace", 0xab), "/a.b/.trace.00000000000000ab.json");
  EXPECT_EQ(path_of_worker("a/t.x.json", 1), "a/t.x.0000000000000001.json");
}

}  // namespace
}  // namespace elastic::timeline
