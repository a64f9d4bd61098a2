#include "rendezvous/launcher/top_frame.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/watched_job.hpp"

namespace elastic::launcher {
namespace {

using rendezvous::StatusReply;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::watched_job;

/// Ten seconds before: half of what is done now.
StatusReply ten_seconds_before() {
  StatusReply before = watched_job();
  for (auto& progress : before.progress) {
    progress.figures->at_s = 90;
    progress.figures->steps = 900;
    progress.figures->shm_bytes -= 100000;
    progress.figures->compute_s -= 6;
    progress.figures->communication_s -= 4;
  }
  return before;
}

TEST(TopFrame, ShowsRatesOfTheTimeBetweenTwoStatuses) {
  const std::string frame = top_frame(ten_seconds_before(), watched_job());
  EXPECT_THAT(frame, HasSubstr("job digits: running, step 1000, 12.5 steps per second, 20 kB per "
                               "second\n"));
  EXPECT_THAT(frame, HasSubstr("generation 3, 2 members (min 1, max 4), 1 joiners\n"));
  EXPECT_THAT(frame, HasSubstr("views: 1 start, 2 loss (recovery 250.0 ms)\n"));
  EXPECT_THAT(frame,
              ContainsRegex(" 0 +left +slot-0 +synced +1000 +100\\.0 ms +40 % +0 % +10 kB\n"));
  EXPECT_THAT(frame, ContainsRegex(" - +- +slot-2 +waiting "));
}

TEST(TopFrame, RatesOfAFirstStatusAreMeansSinceTheWorkersBegan) {
  const std::string frame = top_frame({}, watched_job());
  EXPECT_THAT(frame, ContainsRegex(" 0 +left .* 50\\.0 ms +20 % +0 % +50 kB\n"));
  EXPECT_THAT(frame, ContainsRegex(" 1 +left +slot-1 +disconnected .* 60 % +40 % "));
}

TEST(TopFrame, AWorkerThatHasToldNothingHasNoRates) {
  StatusReply now = watched_job();
  for (auto& progress : now.progress) progress.figures.reset();
  now.history.reset();
  const std::string frame = top_frame(now, now);
  EXPECT_THAT(frame, ContainsRegex(" 0 +left +slot-0 +synced +1000 +- +- +- +-\n"));
  EXPECT_THAT(frame, Not(HasSubstr("events")));
}

TEST(TopFrame, TheLatestEventComesFirst) {
  const std::string frame = top_frame({}, watched_job());
  EXPECT_THAT(frame, ContainsRegex("16:00:01  recovery .*\n16:00:00  view "));
}

TEST(TopFrame, NamesHostsInQuarantine) {
  StatusReply now = watched_job();
  now.launchers->at(1).quarantine = {"its disk is broken", 1000};
  EXPECT_THAT(top_frame({}, now),
              HasSubstr("host right is in quarantine for 1 s more: its disk is broken\n"));
}

TEST(TopFrame, KeepsWithinTheTerminal) {
  StatusReply now = watched_job();
  now.view.members.resize(1000, now.view.members.back());
  now.progress.resize(1000, now.progress.back());
  now.history->events.resize(50, now.history->events.back());
  now.view.members[0].endpoints.host = "h\xc3\xb6st\xc3\xb6st\xc3\xb6st";
  for (const std::size_t rows : {1U, 5U, 12U, 24U, 100U, 2000U}) {
    const std::string frame = top_frame({}, now, {rows, 60});
    const auto lines = static_cast<std::size_t>(std::count(frame.begin(), frame.end(), '\n'));
    if (rows > 8) {
      EXPECT_LE(lines, rows);
    }
    std::istringstream all(frame);
    for (std::string line; std::getline(all, line);) EXPECT_LE(line.size(), 60U) << line;
  }
  EXPECT_THAT(top_frame({}, now, {24, 100}), HasSubstr("... and 9"));
}

TEST(TopFrame, ShowsNamesWithoutWhatATerminalObeys) {
  StatusReply now = watched_job();
  now.job = "\x1b[2J";
  now.history->events.back().text = "\x1b]0;title\x07";
  EXPECT_THAT(top_frame({}, now), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace elastic::launcher
