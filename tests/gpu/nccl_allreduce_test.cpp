// Collectives of tensors on a real device by NCCL, by real processes under elasticrun. The ranks
// may share one device: each tells NCCL that it is on a host of its own, and they go over sockets.
#include <chrono>
#include <dlfcn.h>
#include <signal.h>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/driver_calls.hpp"
#include "integration/device_world.hpp"
#include "integration/one_kill.hpp"
#include "integration/trainer_job.hpp"

namespace elastic::testing {
namespace {

using ::testing::HasSubstr;

std::string by_nccl_from_now_on(const std::string& calls) {
  return calls + " of tensors on devices go by NCCL from now on";
}

/// A prefix for each rank's command, so that NCCL takes each rank for a host of its own.
const std::vector<std::string> kOwnHost{"/bin/sh", "-c",
                                        "export NCCL_HOSTID=host-of-$$; exec \"$@\"", "sh"};

std::vector<std::string> by_nccl(const std::string& meanwhile) {
  return {"ELASTIC_BACKEND=nccl",   "ELASTIC_NCCL_MEANWHILE=" + meanwhile,
          "ELASTIC_LOG_LEVEL=info", "NCCL_NET=Socket",
          "NCCL_NET_PLUGIN=none",   "NCCL_IB_DISABLE=1",
          "NCCL_SOCKET_IFNAME=lo",  "NCCL_MNNVL_ENABLE=0",
          "NCCL_RAS_ENABLE=0",      "NCCL_MAX_CTAS=2"};
}

constexpr std::chrono::milliseconds kLong{30000};

/// elasticrun's options for three trainers, of which so many are replaced.
std::vector<std::string> trainers(const std::string& restarts) {
  std::vector<std::string> options{"-np", "3", "--max-restarts", restarts};
  options.insert(options.end(), kOwnHost.begin(), kOwnHost.end());
  return options;
}

class NcclAllreduceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Gpu::devices() == 0) GTEST_SKIP() << "no CUDA device";
    if (::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) == nullptr) GTEST_SKIP() << ::dlerror();
  }

  static void world(int ranks, const std::string& meanwhile) {
    const std::string said = device_world(ranks, by_nccl(meanwhile), /*exact=*/true, kOwnHost);
    for (const char* const calls : {"allreduces", "broadcasts", "allgathers", "reduce_scatters"}) {
      EXPECT_THAT(said, HasSubstr(by_nccl_from_now_on(calls)));
    }
  }
  static void kills(const std::string& mode, const std::string& meanwhile, int runs) {
    several_kills(by_nccl_of(mode, meanwhile), runs);
  }
  static Scenario by_nccl_of(const std::string& mode, const std::string& meanwhile) {
    Scenario scenario{mode, "auto"};
    scenario.on_device = true;
    scenario.backend = "nccl";
    scenario.environment = by_nccl(meanwhile);
    scenario.prefix = kOwnHost;
    scenario.ranks = 3;
    scenario.says = by_nccl_from_now_on(mode == "moves" ? "broadcasts" : "allreduces");
    return scenario;
  }
};

TEST_F(NcclAllreduceTest, Alone) {
  world(1, "wait");
}

TEST_F(NcclAllreduceTest, OfTwoRanksOnOneDevice) {
  world(2, "wait");
}

TEST_F(NcclAllreduceTest, OfThreeRanksThatBeginOnTheHost) {
  world(3, "host");
}

TEST_F(NcclAllreduceTest, SurvivesTheDeathOfARank) {
  kills("blocking", "wait", 3);
}

TEST_F(NcclAllreduceTest, SurvivesTheDeathOfARankInABucket) {
  kills("named", "wait", 2);
}

TEST_F(NcclAllreduceTest, SurvivesTheDeathOfARankWhileTheNextBucketHasBegun) {
  Scenario scenario = by_nccl_of("named", "wait");
  scenario.environment.emplace_back("ELASTIC_BUCKET_BYTES=4096");
  scenario.says = "buckets of tensors on devices begin early from now on";
  several_kills(scenario, 2);
}

TEST_F(NcclAllreduceTest, SurvivesTheDeathOfARankInOtherCollectives) {
  kills("moves", "wait", 2);
}

/// The one that died is replaced by a joiner, whose state comes while NCCL makes a communicator.
TEST_F(NcclAllreduceTest, GoesOnWithAJoiner) {
  const std::string said = device_training(by_nccl("wait"), kOwnHost);
  EXPECT_THAT(said, HasSubstr("nccl, generation 3: " + by_nccl_from_now_on("allreduces")));
}

/// The one that leaves does so between two collectives, so NCCL can shrink the communicator.
TEST_F(NcclAllreduceTest, ShrinksTheCommunicatorWithoutARankThatLeaves) {
  device_shrinking(by_nccl("wait"), kOwnHost);
}

/// Each death and each join replaces the communicators of all.
TEST_F(NcclAllreduceTest, KeepsTheDevicesMemoryOverTwentyViewChanges) {
  constexpr std::size_t kMayGrow = std::size_t{64} << 20U;
  const Gpu gpu(0);
  TrainerJob job(trainers("10"), "device", by_nccl("wait"));
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  const std::size_t before = gpu.used();
  for (std::size_t died = 1; died <= 10; ++died) {
    ::kill(job.pid(1), SIGKILL);
    ASSERT_TRUE(job.wait_until_trained(3 + died)) << job.output();
  }
  // The driver takes a moment for the memory of a process that has ended.
  EXPECT_TRUE(eventually(kLong, [&] { return gpu.used() < before + kMayGrow; }))
      << before << " bytes were in use, and now " << gpu.used();
  EXPECT_EQ(job.finish(), 0) << job.output();
}

/// NCCL waits for a process that is there and does nothing, until elasticrun has killed it.
TEST_F(NcclAllreduceTest, GoesOnWithoutARankThatIsFrozen) {
  const std::string said = device_training(by_nccl("wait"), kOwnHost, SIGSTOP);
  EXPECT_THAT(said, HasSubstr("the job has given it up"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("ncclCommAbort has not returned")));
  EXPECT_THAT(said, HasSubstr("nccl, generation 3: " + by_nccl_from_now_on("allreduces")));
}

}  // namespace
}  // namespace elastic::testing
