// The streams on which lanes have NCCL work.
#include <gtest/gtest.h>

#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "cuda/driver_calls.hpp"

namespace elastic::collectives::nccl {
namespace {

TEST(LaneStream, HasTheHighestPriorityOfItsDevice) {
  const testing::Gpu gpu(0, CUDA_STAND_IN);
  SharedDevices devices(CUDA_STAND_IN);
  const auto device = devices.open(0);
  ASSERT_TRUE(device.ok()) << device.status().message();
  int lowest = 0;
  int highest = 0;
  gpu.must("cuCtxGetStreamPriorityRange",
           gpu.call<int(int*, int*)>("cuCtxGetStreamPriorityRange")(&lowest, &highest));
  ASSERT_LT(highest, lowest);
  for (const std::size_t lane : {std::size_t{0}, std::size_t{1}}) {
    const auto stream = device.value()->stream(lane);
    ASSERT_TRUE(stream.ok()) << stream.status().message();
    int priority = lowest;
    gpu.must("cuStreamGetPriority",
             gpu.call<int(void*, int*)>("cuStreamGetPriority")(stream.value(), &priority));
    EXPECT_EQ(priority, highest);
  }
}

}  // namespace
}  // namespace elastic::collectives::nccl
