#include "base/cuda_driver.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CudaDriverTest : public ::testing::Test {
 protected:
  ~CudaDriverTest() override {
    ::unsetenv("CUDA_STAND_IN_DEVICES");
    ::unsetenv("CUDA_STAND_IN_ERROR");
  }
};

TEST_F(CudaDriverTest, CountsDevices) {
  const CudaDriver found = CudaDriver::find(CUDA_STAND_IN);
  EXPECT_TRUE(found.usable()) << found.missing;
  EXPECT_EQ(found.version, "13.0");
  EXPECT_EQ(found.devices, 2);
}

TEST_F(CudaDriverTest, FindsADriverWithoutDevices) {
  ::setenv("CUDA_STAND_IN_ERROR", "100", 1);
  const CudaDriver found = CudaDriver::find(CUDA_STAND_IN);
  EXPECT_TRUE(found.usable()) << found.missing;
  EXPECT_EQ(found.devices, 0);
}

TEST_F(CudaDriverTest, SaysThatThereIsNone) {
  const CudaDriver found = CudaDriver::find("/nowhere/libcuda.so.1");
  EXPECT_FALSE(found.usable());
  EXPECT_EQ(found.devices, 0);
  EXPECT_THAT(found.missing,
              AllOf(HasSubstr("there is no CUDA driver"), HasSubstr("/nowhere/libcuda.so.1")));
  EXPECT_THAT(CudaDriver::find(NO_DRIVER).missing, HasSubstr("there is no CUDA driver"));
}

TEST_F(CudaDriverTest, SaysWhyItDoesNotWork) {
  ::setenv("CUDA_STAND_IN_ERROR", "804", 1);
  EXPECT_THAT(CudaDriver::find(CUDA_STAND_IN).missing,
              AllOf(HasSubstr("cuInit"), HasSubstr("forward compatibility")));
}

}  // namespace
}  // namespace elastic
