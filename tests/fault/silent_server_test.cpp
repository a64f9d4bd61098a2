// The server hears no member, or not one of them, for longer than it tolerates silence.
#include <signal.h>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

class SilentServerTest : public NetworkTest {
 protected:
  /// Lets a worker join and the job end. The members must have kept each other all along.
  void finish_with_a_joiner(FaultJob& job, const std::vector<std::string>& arguments,
                            const std::vector<FaultWorker*>& members) {
    ASSERT_TRUE(FaultJob::await_line(job.start(arguments), "entered")) << job.text();
    ASSERT_TRUE(FaultJob::await_steps(job.others({}), 20)) << job.text();
    for (FaultWorker* member : members) {
      for (const Step& step : member->log().steps()) {
        EXPECT_GE(step.contributors, 3U) << "a worker was given up";
      }
    }
    finish(job, job.others({}));
  }
};

class SilentServerForLong : public SilentServerTest {
 protected:
  /// No member is heard for so long, so the fault must be on the server's side. The length of the
  /// silence is what is tested.
  void expect_undisturbed(std::chrono::milliseconds silence) {
    FaultJob& job = make_job({.np = 3, .evict_after = kUsualEviction}, 1);
    const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(),
                                             "pause_us=1000"};
    job.start_all(arguments);
    const auto members = job.others({});
    ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
    hosts_->silence(kServerHost);
    std::this_thread::sleep_for(silence);
    ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
    hosts_->restore(kServerHost);
    ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
    finish_with_a_joiner(job, arguments, members);
  }
};

/// For longer than a silent member is kept.
TEST_F(SilentServerForLong, StallsNoMemberAndGivesNoneUp) {
  expect_undisturbed(3 * kUsualEviction);
}

/// Connections end one after the other, those of the server after 11 s. A leader among several
/// servers behaves in the same way.
TEST_F(SilentServerForLong, KeepsTheMembersWhoseConnectionsAreLost) {
  expect_undisturbed(std::chrono::seconds(15));
  EXPECT_NE(job_->text().find("the members are awaited"), std::string::npos) << job_->text();
}

/// It is paused, and one of two workers dies when they have done a part of a step. Beginning the
/// step again would give other members that part for the next step.
TEST(StoppedServer, AWorkerThatHasAPartOfAStepLeaves) {
  FaultJob job({.np = 2, .worker_environment = {"ELASTIC_VIEW_TIMEOUT_MS=300"}});
  job.start_all({"kind=half_step", "elements=10", "steps=1"});
  ASSERT_TRUE(FaultJob::await_line(job.worker(1), "half")) << job.text();
  ::kill(job.server_pid(), SIGSTOP);
  job.worker(1).kill();
  EXPECT_EQ(job.worker(0).wait(kLong), 3) << job.text();
  const std::string failed = job.worker(0).log().told("failed ");
  EXPECT_THAT(failed, ::testing::HasSubstr("results for some of its tensors, and none for 'own'"));
  EXPECT_THAT(failed, ::testing::HasSubstr("this worker has left the job"));
}

class CutFromTheServer : public SilentServerTest {};

/// The others' positions tell that it goes on.
TEST_F(CutFromTheServer, IsNotGivenUpWhileItTakesPart) {
  constexpr auto kCut = 3 * kUsualEviction;
  constexpr std::size_t kSlot = 1;
  FaultJob& job = make_job({.np = 3, .evict_after = kUsualEviction}, 1);
  const std::vector<std::string> arguments{"kind=train", "until=" + job.end_file(),
                                           "pause_us=1000"};
  job.start_all(arguments);
  const auto members = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(members, 20)) << job.text();
  hosts_->cut(host_of(kSlot), kServerHost);
  hosts_->cut(kServerHost, host_of(kSlot));
  // The test is that nothing happens, for longer than a silent member is kept.
  std::this_thread::sleep_for(kCut);
  EXPECT_EQ(generation(job.worker(kSlot)), 1U) << job.text();
  hosts_->mend(host_of(kSlot), kServerHost);
  hosts_->mend(kServerHost, host_of(kSlot));
  // TCP tries again when about as much time has passed again.
  std::this_thread::sleep_for(2 * kCut);
  finish_with_a_joiner(job, arguments, members);
}

}  // namespace
}  // namespace elastic::testing
