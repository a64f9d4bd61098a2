#include "collectives/device/placement.hpp"

#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Place kUnknown{};
const Place kPinned{Place::Kind::kHost, 0};
const Place kOnFirst{Place::Kind::kDevice, 0};
const Place kOnSecond{Place::Kind::kDevice, 1};
const Place kManaged{Place::Kind::kManaged, 1};

ConstTensorView tensor(Device device) {
  static float values[10];
  return {values, 10, DType::kF32, device};
}

const ConstTensorView kDeviceTensor = tensor({Device::Kind::kCuda, 1});
const ConstTensorView kHostTensor = tensor({});

TEST(Placement, TakesTensorsWhereTheyAreSaidToBe) {
  EXPECT_TRUE(check_device_tensor(kDeviceTensor, kOnSecond, kOnSecond).ok());
  EXPECT_TRUE(check_device_tensor(kDeviceTensor, kManaged, kManaged).ok());
  EXPECT_TRUE(check_host_tensor(kHostTensor, kUnknown).ok());
  EXPECT_TRUE(check_host_tensor(kHostTensor, kPinned).ok());
  EXPECT_TRUE(check_host_tensor(kHostTensor, kManaged).ok());
}

/// Such as after a kernel of the program that has failed: that says nothing of the address.
TEST(Placement, TellsAFailureOfTheDriverFromAnUnknownAddress) {
  constexpr int kInvalidValue = 1;
  constexpr int kIllegalAddress = 700;
  const auto says = [](auto error) {
    return +[](unsigned, int*, void**, CudaApi::DevicePointer) { return decltype(error)::value; };
  };
  const int value = 0;
  const Place failed = place_of(says(std::integral_constant<int, kIllegalAddress>()), &value);
  EXPECT_EQ(failed.error, kIllegalAddress);
  const Place unknown = place_of(says(std::integral_constant<int, kInvalidValue>()), &value);
  EXPECT_EQ(unknown.kind, Place::Kind::kUnknown);
  EXPECT_EQ(unknown.error, 0);
}

TEST(Placement, SaysWhereTheyAreInstead) {
  const auto said = [](const Place& first, const Place& last) {
    const Status status = check_device_tensor(kDeviceTensor, first, last);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(said(kOnFirst, kOnFirst),
              AllOf(HasSubstr("a tensor of 10 elements was given as one on CUDA device 1"),
                    HasSubstr("its first byte lies on CUDA device 0: name that one")));
  EXPECT_THAT(said(kUnknown, kUnknown), AllOf(HasSubstr("does not know, such as in host memory"),
                                              HasSubstr("give it as a host tensor")));
  EXPECT_THAT(said(kPinned, kPinned), HasSubstr("host memory that CUDA has pinned"));
  EXPECT_THAT(said(kOnSecond, kUnknown), HasSubstr("its last byte lies at an address"));
  const Status host = check_host_tensor(kHostTensor, kOnSecond);
  EXPECT_EQ(host.code(), Code::kInvalidArgument);
  EXPECT_THAT(host.message(), AllOf(HasSubstr("given as one in host memory, and lies on CUDA "
                                              "device 1"),
                                    HasSubstr("cuda_view")));
}

}  // namespace
}  // namespace elastic::device
