#include "rendezvous/launcher/status_table.hpp"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/monitoring/status_json.hpp"

namespace elastic::launcher {
namespace {

using monitoring::status_json;
using testing::HasSubstr;
using testing::Not;

rendezvous::StatusReply with_joiner(const std::string& waits_for) {
  rendezvous::StatusReply status;
  status.joiners = {{"3f2a", "2", 92, true, waits_for}};
  return status;
}

TEST(StatusTable, SaysWhyAJoinerIsKeptWaiting) {
  const auto status = with_joiner("a faster line: 20.0 s");
  EXPECT_THAT(status_table(status), HasSubstr("waiting"));
  EXPECT_THAT(status_table(status), HasSubstr("pid 92 waits for a faster line: 20.0 s\n"));
  EXPECT_THAT(status_json(status), HasSubstr(R"("waits_for":"a faster line: 20.0 s")"));
}

TEST(StatusTable, AJoinerThatWaitsForTheNextStepIsJoining) {
  EXPECT_THAT(status_table(with_joiner("")), HasSubstr("joining"));
  EXPECT_THAT(status_table(with_joiner("")), Not(HasSubstr("waits for")));
}

TEST(StatusTable, ShowsNamesWithoutWhatATerminalObeys) {
  auto status = with_joiner("a line\x1b[2J");
  status.job = "\x1b]0;job\x07";
  EXPECT_THAT(status_table(status), Not(HasSubstr("\x1b")));
  EXPECT_THAT(status_table(status), HasSubstr("\\x1b]0;job\\x07"));
}

TEST(StatusTable, SaysHowManyWorkersOfAFirstViewAreThere) {
  auto status = with_joiner("");
  status.phase = "forming";
  status.initial_np = 4;
  EXPECT_THAT(status_table(status), HasSubstr(": forming, 1 of 4 workers (min 1, max none)\n"));
  EXPECT_THAT(status_json(status), HasSubstr(R"("initial_np":4)"));
  status.initial_np.reset();  // a server of an earlier release
  EXPECT_THAT(status_table(status), HasSubstr("1 joiners waiting"));
}

rendezvous::StatusReply running() {
  rendezvous::StatusReply status;
  status.view.members.resize(2);
  status.view.members[0] = {"3f2a", {std::string(60, 'h') + "/1", {}, ""}, 4194304, "0", false};
  status.view.members[1] = {"77aa", {"b/1", {}, ""}, 92, "1", false};
  status.view.commits = 3;
  status.commits = 1234567890;
  status.steps_per_second = 12.34;
  status.slowest = 1;
  status.heartbeat_age_ms = {12, 600};
  status.progress = {{1234567890, 98765432109, true, true}, {1234567889, 98765432108, true, false}};
  return status;
}

TEST(StatusTable, ShowsStepsOperationsAndTheSlowestRank) {
  const std::string table = status_table(running());
  EXPECT_THAT(table, HasSubstr("step 1234567890, 12.3 steps per second, slowest rank: 1\n"));
  EXPECT_THAT(table, HasSubstr("98765432109"));
  EXPECT_THAT(table, HasSubstr("disconnected"));
  EXPECT_THAT(table, HasSubstr("synced: has the job's training state"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(StatusTable, JsonHasTheStepsOfNowAndNotOfTheLastViewChange) {
  const std::string json = status_json(running());
  EXPECT_THAT(json, HasSubstr(R"("commits":1234567890,"events")"));
  EXPECT_THAT(json, HasSubstr(R"("slowest_rank":1)"));
  EXPECT_THAT(json, HasSubstr(R"("state":"disconnected")"));
  auto unknown = running();
  unknown.slowest = -1;
  EXPECT_THAT(status_json(unknown), HasSubstr(R"("slowest_rank":null)"));
}

TEST(StatusTable, SaysWhichHostsAreInQuarantineAndWhy) {
  auto status = running();
  status.launchers = {{0, "a", 2, 2, true, {}}, {1, "b", 2, 0, true, {}}};
  EXPECT_THAT(status_table(status), HasSubstr("hosts: a (0) 2 of 2, b (1) 0 of 2\nrank"));
  EXPECT_THAT(status_json(status), HasSubstr(R"("quarantine":null)"));
  status.launchers->at(1).quarantine = {"its disk is broken", 41100};
  EXPECT_THAT(status_table(status),
              HasSubstr("host b is in quarantine for 42 s more: its disk is broken\n"));
  EXPECT_THAT(status_json(status),
              HasSubstr(R"("quarantine":{"left_seconds":41.1,"why":"its disk is broken"})"));
}

TEST(StatusTable, ADrainedHostIsNotLostWhenItsLauncherHasEnded) {
  auto status = running();
  status.launchers = {{0, "a", 2, 2, true, {}},
                      {1, "b", 0, 1, true, {}},
                      {2, "c", 0, 0, true, {}},
                      {3, "d", 0, 1, false, {}},
                      {4, "e", 2, 1, false, {}}};
  EXPECT_THAT(
      status_table(status),
      HasSubstr("hosts: a (0) 2 of 2, b (1) drained, 1 left, c (2) drained, d (3) drained, e "
                "(4) not connected\n"));
}

TEST(StatusTable, MembersOfAJobThatIsOverHaveEndedAndAreNotDisconnected) {
  for (const char* phase : {"done", "failed"}) {
    auto over = running();
    over.phase = phase;
    EXPECT_THAT(status_table(over), HasSubstr(" ended "));
    EXPECT_THAT(status_table(over), Not(HasSubstr("disconnected")));
    EXPECT_THAT(status_json(over), HasSubstr(R"("state":"ended")"));
  }
}

}  // namespace
}  // namespace elastic::launcher
