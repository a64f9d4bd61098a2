// Allreduces of tensors on a real device, by real processes under elasticrun: what
// tests/integration/device_job_test.cpp does with a stand-in for the driver. All ranks may share
// one device: nothing of NCCL takes part.
#include <gtest/gtest.h>

#include "cuda/driver_calls.hpp"
#include "integration/device_world.hpp"
#include "integration/one_kill.hpp"

namespace elastic::testing {
namespace {

class DeviceAllreduceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Gpu::devices() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

TEST_F(DeviceAllreduceTest, AloneIsAsOnTheHost) {
  device_world(1, {});
}

TEST_F(DeviceAllreduceTest, OfFourRanksIsAsOnTheHost) {
  device_world(4, {});
}

TEST_F(DeviceAllreduceTest, OfThreeRanksOverTcpIsAsOnTheHost) {
  device_world(3, {"ELASTIC_TRANSPORT=tcp"});
}

TEST_F(DeviceAllreduceTest, SurvivesTheDeathOfARank) {
  for (const char* mode : {"mixed", "moves"}) {
    Scenario scenario{mode, "auto"};
    scenario.on_device = true;
    several_kills(scenario, 3);
  }
}

}  // namespace
}  // namespace elastic::testing
