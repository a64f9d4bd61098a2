// Hosts that fall silent: nothing arrives any more, and no connection is closed.
#include <chrono>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/punctuality.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Silence {
  std::string name;
  std::size_t silent;
  std::string kind;
  std::size_t elements;

  friend std::ostream& operator<<(std::ostream& out, const Silence& silence) {
    return out << silence.name;
  }
};

class SilentHost : public NetworkTest, public ::testing::WithParamInterface<Silence> {};

TEST_P(SilentHost, IsGivenUpWithinTwoSeconds) {
  const Punctuality punctuality;
  FaultJob& job = make_job({.np = 4, .evict_after = kUsualEviction});
  job.start_all({"kind=" + GetParam().kind, "until=" + job.end_file(), "pause_us=200",
                 "elements=" + std::to_string(GetParam().elements)});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  const auto survivors = job.others({GetParam().silent});
  hosts_->silence(host_of(GetParam().silent));
  const auto begin = steady_clock::now();
  for (FaultWorker* survivor : survivors) {
    ASSERT_TRUE(eventually(kLong, [&] { return generation(*survivor) == 2; })) << job.text();
  }
  const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
  std::printf("resolved after %lld ms\n", static_cast<long long>(took.count()));
  // The server bears as much more silence as heartbeats have been late: several times that.
  EXPECT_LT(took, std::chrono::seconds(2 * kSlowness) + 6 * punctuality.worst()) << job.text();
  EXPECT_TRUE(FaultJob::await_steps(survivors, 20));
  EXPECT_EQ(survivors.front()->log().steps().back().contributors, 3U);
  job.worker(GetParam().silent).kill();
  finish(job, survivors);
}

INSTANTIATE_TEST_SUITE_P(Hosts, SilentHost,
                         ::testing::Values(Silence{"first", 0, "mixed", 1000},
                                           Silence{"last", 3, "allreduce", 200000},
                                           Silence{"training", 1, "train", 1000}),
                         ::testing::PrintToStringParamName());

class SilentServer : public NetworkTest {};

/// The silence is shorter than the server's limit for giving workers up.
TEST_F(SilentServer, StallsNoMemberAndLosesNone) {
  FaultJob& job = make_job({.np = 3, .evict_after = kUsualEviction});
  job.start_all({"until=" + job.end_file(), "pause_us=1000"});
  const auto all = job.others({});
  ASSERT_TRUE(FaultJob::await_steps(all, 20)) << job.text();
  hosts_->silence(kServerHost);
  ASSERT_TRUE(FaultJob::await_steps(all, 30)) << job.text();
  hosts_->restore(kServerHost);
  ASSERT_TRUE(FaultJob::await_steps(all, 100)) << job.text();
  EXPECT_EQ(generation(*all.front()), 1U);
  finish(job, all);
}

class SharedMemoryOverHosts : public NetworkTest {
 protected:
  static constexpr const char* kWhy =
      "is on another host, where shared memory does not reach: set ";
};

TEST_F(SharedMemoryOverHosts, EndsTheJobAtTheFirstTry) {
  FaultJob& job = make_job({.np = 2, .transport = "shm"});
  job.start_all({"until=" + job.end_file()});
  for (FaultWorker* worker : job.others({})) {
    EXPECT_EQ(worker->wait(kLong), 3) << job.text();
    EXPECT_THAT(worker->log().told("failed "), ::testing::HasSubstr(kWhy)) << job.text();
  }
  EXPECT_THAT(job.text(), ::testing::HasSubstr("too many members could not begin: "));
  EXPECT_THAT(job.text(), ::testing::Not(::testing::HasSubstr("cannot be linked")));
}

/// The others reach each other over TCP.
TEST_F(SharedMemoryOverHosts, CostsTheOnlyWorkerThatWantsItItsPlace) {
  FaultJob& job = make_job({.np = 3});
  const std::vector<std::string> arguments{"until=" + job.end_file(), "pause_us=1000"};
  job.start(arguments);
  job.start(arguments, {"ELASTIC_TRANSPORT=shm"});
  job.start(arguments);
  EXPECT_EQ(job.worker(1).wait(kLong), 3) << job.text();
  EXPECT_THAT(job.worker(1).log().told("failed "), ::testing::HasSubstr(kWhy)) << job.text();
  const auto staying = job.others({1});
  EXPECT_TRUE(FaultJob::await_steps(staying, 10)) << job.text();
  EXPECT_EQ(staying.front()->log().steps().back().contributors, 2U);
  finish(job, staying);
}

}  // namespace
}  // namespace elastic::testing
