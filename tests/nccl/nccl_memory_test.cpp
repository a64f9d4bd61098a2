// The memory that the backend nccl registers for allreduces.
#include "collectives/backend/nccl/memory/nccl_memory.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "nccl/nccl_allreduce_fixture.hpp"

namespace elastic::collectives::nccl {
namespace {

class NcclMemoryTest : public NcclAllreduceFixture {};

TEST_F(NcclMemoryTest, ReducesInMemoryThatIsRegistered) {
  make(3, true);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().in_registered, 3 * 4);
  EXPECT_EQ(nccl_->counts().registrations, 3) << "once each block";
  EXPECT_TRUE(allreduce({{DType::kF32, 1000000}, {DType::kI8, 5}}));
  EXPECT_EQ(nccl_->counts().in_registered, 3 * 6);
  EXPECT_EQ(nccl_->counts().registrations, 6);
  make(3, true, 8);
  EXPECT_TRUE(allreduce());
  EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().registrations, 9) << "with each communicator";
}

TEST_F(NcclMemoryTest, RegistersNothingWhereARankCannot) {
  nccl_->script(1, {.refuses_memory = true});
  make(3, true);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(allreduce(with_casts(), ReduceOp::kAverage));
  EXPECT_EQ(nccl_->counts().in_registered, 0);
  EXPECT_EQ(nccl_->counts().registrations, 3) << "it was tried again";
  EXPECT_EQ(nccl_->counts().aborts, 0);
}

TEST_F(NcclMemoryTest, RegistersNothingWhereTheLibraryCannot) {
  make(2, true, 7,
       [](NcclServices& its) { its.devices = std::make_shared<SharedDevices>(CUDA_STAND_IN); });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().registrations, 0);
}

TEST_F(NcclMemoryTest, IsRegisteredWhereAnAbortInterruptsItOrOnRequest) {
  EXPECT_TRUE(registers_memory(NcclRegister::kAuto, 22802));
  EXPECT_FALSE(registers_memory(NcclRegister::kAuto, 22803));
  EXPECT_TRUE(registers_memory(NcclRegister::kAlways, 22809));
  EXPECT_FALSE(registers_memory(NcclRegister::kNever, 22203));
}

/// The results are there still when the view is over, and their memory.
TEST_F(NcclMemoryTest, KeepsWhatIsRegisteredUntilTheCommunicatorHasEnded) {
  nccl_->script(0, {.abort_waits = true});
  make(2, true);
  EXPECT_TRUE(allreduce());
  EXPECT_TRUE(allreduce());
  EXPECT_EQ(nccl_->counts().registrations, 2);
  backends_.clear();
  other_backends_.clear();
  until([&] { return nccl_->counts().aborts == 2; });
  for (NcclServices& each : services_) each.devices.reset();
  EXPECT_EQ(nccl_->violations(), std::vector<std::string>());
}

}  // namespace
}  // namespace elastic::collectives::nccl
