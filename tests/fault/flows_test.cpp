// How many TCP connections a link between two hosts has, and that it works with those in use.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "fault/effort.hpp"
#include "fault/network_fixture.hpp"
#include "fault/process_facts.hpp"
#include "fault/step_checks.hpp"

namespace elastic::testing {
namespace {

constexpr std::size_t kLanes = 2;

class Flows : public NetworkTest {
 protected:
  FaultJob& make_two_hosts(int np, const std::string& streams = "0") {
    hosts_ = std::make_unique<NetworkHosts>(3);
    FaultJobOptions options{.np = np};
    options.hosts = hosts_.get();
    options.slots_per_host = np / 2;
    options.worker_environment = {"ELASTIC_TCP_STREAMS=" + streams};
    job_ = std::make_unique<FaultJob>(options);
    return *job_;
  }
  /// The connections from the first worker, which is on host 1, to all workers on host 2.
  std::size_t to_the_other_host() const {
    return connections_to(job_->worker(0).pid(), hosts_->address(2));
  }
};

TEST_F(Flows, AreSixteenBetweenTwoWorkersAndADeathDoesNotMatter) {
  FaultJob& job = make_two_hosts(2);
  job.start_all({"until=" + job.end_file(), "pause_us=200", "elements=300000"});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(to_the_other_host(), 16 * kLanes);
  job.worker(1).kill();
  const auto survivors = job.others({1});
  ASSERT_TRUE(eventually(kLong, [&] { return generation(*survivors.front()) == 2; })) << job.text();
  EXPECT_EQ(survivors.front()->log().steps().back().contributors, 1U);
  EXPECT_TRUE(eventually(kLong, [&] { return to_the_other_host() == 0; })) << to_the_other_host();
  finish(job, survivors);
}

TEST_F(Flows, AreSixteenForAllWorkersOfAHostTogether) {
  FaultJob& job = make_two_hosts(4);
  job.start_all({"until=" + job.end_file(), "pause_us=200", "elements=300000"});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(to_the_other_host(), 2 * 8 * kLanes);  // two workers there
  job.worker(3).kill();
  const auto survivors = job.others({3});
  for (FaultWorker* survivor : survivors) {
    ASSERT_TRUE(eventually(kLong, [&] { return generation(*survivor) == 2; })) << job.text();
  }
  EXPECT_EQ(survivors.front()->log().steps().back().contributors, 3U);
  EXPECT_TRUE(eventually(kLong, [&] { return to_the_other_host() == 8 * kLanes; }))
      << to_the_other_host();
  finish(job, survivors);
}

TEST_F(Flows, AreAsManyAsWasAskedFor) {
  FaultJob& job = make_two_hosts(2, "3");
  job.start_all({"until=" + job.end_file(), "pause_us=200", "elements=300000"});
  ASSERT_TRUE(FaultJob::await_steps(job.others({}), 10)) << job.text();
  EXPECT_EQ(to_the_other_host(), 3 * kLanes);
  finish(job, job.others({}));
}

}  // namespace
}  // namespace elastic::testing
