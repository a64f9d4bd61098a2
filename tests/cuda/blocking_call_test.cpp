// The tensors of a blocking call, one that it reads and one that it writes, on their way between
// the memory of a stand-in for devices and the host. A program that accesses that memory without
// the driver's copies crashes.
#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/device/devices.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "cuda/driver_calls.hpp"

namespace elastic::device {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using testing::Gpu;
using testing::GpuArray;
using testing::GpuStream;
using ::testing::HasSubstr;
using testing::PinnedArray;

class BlockingCallTest : public ::testing::Test {
 protected:
  BlockingCallTest() : gpu_(0, CUDA_STAND_IN), stream_(gpu_), devices_(CUDA_STAND_IN) {}
  ~BlockingCallTest() override { ::unsetenv("CUDA_STAND_IN_FAIL"); }

  auto stage(const ConstTensorView& in, const TensorView& out, void* stream = nullptr,
             Fetch when = Fetch::kAtOnce) {
    return devices_.stage("call", {&in, 1}, {&out, 1}, {stream}, when);
  }
  static Status write(StagedTensors& staged, std::size_t bytes) {
    Status status = staged.send_back(bytes);
    return status.ok() ? staged.wait_until_back() : status;
  }
  std::string refusal(const ConstTensorView& in, const TensorView& out, void* stream = nullptr,
                      Code code = Code::kInvalidArgument) {
    const auto staged = stage(in, out, stream);
    EXPECT_EQ(staged.status().code(), code) << staged.status().message();
    return staged.status().message();
  }
  static TensorView view_of(const GpuArray<int>& array) {
    return cuda_view(array.data(), array.count());
  }
  static const StagedTensor& tensor_of(const StagedTensors& staged) {
    return staged.tensors().front();
  }
  static std::span<const int> input_of(const StagedTensors& staged) {
    const ConstTensorView& input = tensor_of(staged).input;
    return {static_cast<const int*>(input.data), input.count};
  }
  static std::span<int> output_of(const StagedTensors& staged) {
    const TensorView& output = tensor_of(staged).output;
    return {static_cast<int*>(output.data), output.count};
  }

  Gpu gpu_;
  GpuStream stream_;
  Devices devices_;
};

TEST_F(BlockingCallTest, ReadsAndWritesTensorsOfDifferentSizes) {
  const std::vector<int> values{1, 2, 3};
  const GpuArray<int> in(gpu_, values, 1);
  const GpuArray<int> out(gpu_, std::vector<int>(6, -1), 2);
  const auto made = stage(view_of(in), view_of(out), stream_.handle());
  ASSERT_TRUE(made.ok()) << made.status().message();
  StagedTensors& staged = *made.value();
  ASSERT_TRUE(staged.read().ok());
  EXPECT_EQ(tensor_of(staged).input.device.kind, Device::Kind::kHost);
  EXPECT_THAT(input_of(staged), ElementsAreArray(values));
  ASSERT_EQ(output_of(staged).size(), 6U);
  for (int i = 0; i < 6; ++i) output_of(staged)[static_cast<std::size_t>(i)] = 10 * i;
  EXPECT_EQ(out.read(), std::vector<int>(6, -1)) << "nothing was written yet";
  ASSERT_TRUE(write(staged, 4 * sizeof(int)).ok());
  EXPECT_EQ(out.read(), (std::vector<int>{0, 10, 20, 30, -1, -1}));
  EXPECT_EQ(in.read(), values);
}

TEST_F(BlockingCallTest, LeavesWhatIsInHostMemoryThere) {
  std::vector<int> own{1, 2, 3};
  const GpuArray<int> array(gpu_, std::vector<int>{7, 8});
  {
    const auto staged = stage(view_of(array), view(std::span(own)));
    ASSERT_TRUE(staged.value()->read().ok());
    EXPECT_THAT(input_of(*staged.value()), ElementsAreArray({7, 8}));
    EXPECT_EQ(tensor_of(*staged.value()).output.data, own.data());
    ASSERT_TRUE(write(*staged.value(), 3 * sizeof(int)).ok());
    EXPECT_EQ(own, (std::vector<int>{1, 2, 3}));
  }
  const auto staged = stage(view(std::span(own)), view_of(array));
  ASSERT_TRUE(staged.value()->read().ok());
  EXPECT_EQ(tensor_of(*staged.value()).input.data, own.data());
  output_of(*staged.value())[0] = 70;
  ASSERT_TRUE(write(*staged.value(), sizeof(int)).ok());
  EXPECT_EQ(array.read(), (std::vector<int>{70, 8}));
}

TEST_F(BlockingCallTest, GoesToTheHostOnDemandOnly) {
  const std::vector<int> values{1, 2, 3};
  const GpuArray<int> in(gpu_, values);
  const GpuArray<int> out(gpu_, std::vector<int>(2, -1));
  // Nothing of the host's is needed, and nothing is copied to it.
  ::setenv("CUDA_STAND_IN_FAIL", "cuMemHostAlloc:1", 1);
  const auto made = stage(view_of(in), view_of(out), stream_.handle(), Fetch::kOnDemand);
  ASSERT_TRUE(made.ok()) << made.status().message();
  StagedTensors& staged = *made.value();
  EXPECT_EQ(tensor_of(staged).given_input.data, in.data());
  EXPECT_EQ(tensor_of(staged).given_output.data, out.data());
  EXPECT_EQ(tensor_of(staged).input.data, nullptr);
  EXPECT_EQ(tensor_of(staged).input.count, 3U);
  EXPECT_EQ(tensor_of(staged).output.count, 2U);
  EXPECT_EQ(tensor_of(staged).output.device.kind, Device::Kind::kHost);
  ASSERT_TRUE(staged.wait_for_stream().ok());
  EXPECT_THAT(staged.fetch().message(),
              AllOf(HasSubstr("call: "), HasSubstr("pinned host memory")));
  ::unsetenv("CUDA_STAND_IN_FAIL");
  ASSERT_TRUE(staged.fetch().ok());
  EXPECT_THAT(input_of(staged), ElementsAreArray(values));
  output_of(staged)[0] = 70;
  ASSERT_TRUE(staged.fetch().ok());
  EXPECT_EQ(output_of(staged)[0], 70) << "it was brought again";
  ASSERT_TRUE(write(staged, sizeof(int)).ok());
  EXPECT_EQ(out.read(), (std::vector<int>{70, -1}));
}

/// A taker, which gets the result from a holder, needs no input.
TEST_F(BlockingCallTest, HasRoomForAResultAlone) {
  const GpuArray<int> in(gpu_, std::vector<int>{1, 2, 3});
  const GpuArray<int> out(gpu_, std::vector<int>(2, -1));
  const auto staged = stage(view_of(in), view_of(out), nullptr, Fetch::kOnDemand);
  ASSERT_TRUE(staged.value()->wait_for_stream().ok());
  ::setenv("CUDA_STAND_IN_FAIL", "cuMemcpyDtoHAsync_v2:1", 1);
  ASSERT_TRUE(staged.value()->make_room().ok());
  output_of(*staged.value())[1] = 5;
  ASSERT_TRUE(write(*staged.value(), 2 * sizeof(int)).ok());
  EXPECT_EQ(out.read()[1], 5);
}

TEST_F(BlockingCallTest, TakesTensorsWithoutElements) {
  const GpuArray<int> nothing(gpu_, std::vector<int>{});
  const auto staged = stage(view_of(nothing), view_of(nothing), stream_.handle());
  ASSERT_TRUE(staged.ok()) << staged.status().message();
  EXPECT_TRUE(staged.value()->read().ok());
  EXPECT_TRUE(write(*staged.value(), 0).ok());
}

/// Earlier work on the call's stream may still write its input, and read the old output.
TEST_F(BlockingCallTest, WaitsForWhatItsStreamHasToDo) {
  std::atomic<bool> gate{false};
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const PinnedArray<int> pinned(gpu_, std::vector<int>{3, 4});
  const auto staged = stage(view_of(array), view_of(array), stream_.handle());
  stream_.hold(gate);
  stream_.write(array.address(), pinned);
  std::thread opener([&] {
    gate = true;
    gate.notify_all();
  });
  EXPECT_TRUE(staged.value()->wait_for_stream().ok());
  EXPECT_TRUE(gate) << "it has not waited";
  opener.join();
  ASSERT_TRUE(staged.value()->read().ok());
  EXPECT_THAT(input_of(*staged.value()), ElementsAreArray({3, 4}));
}

TEST_F(BlockingCallTest, IsNamedWhereItWaitsForLong) {
  std::promise<std::string> warned;
  std::atomic<bool> gate{false};
  Devices devices(CUDA_STAND_IN,
                  std::make_shared<StallWatch>(Milliseconds(1), [&](const std::string& message) {
                    if (gate) return;  // once
                    warned.set_value(message);
                    gate = true;
                    gate.notify_all();
                  }));
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const ConstTensorView input = view_of(array);
  const TensorView output = view_of(array);
  const auto staged = devices.stage("broadcast", {&input, 1}, {&output, 1}, {stream_.handle()});
  stream_.hold(gate);  // until there was a warning
  ASSERT_TRUE(staged.value()->read().ok());
  EXPECT_THAT(warned.get_future().get(), HasSubstr("broadcast waits for CUDA device 0, for "));
}

TEST_F(BlockingCallTest, SaysWhichTensorIsWrong) {
  std::vector<int> host(4);
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const TensorView on_device = view_of(array);
  const TensorView called_host{array.data(), 2, DType::kI32, {}};
  EXPECT_THAT(refusal(cuda_view(host.data(), 4), on_device),
              AllOf(HasSubstr("call, input: a tensor of 4 elements"), HasSubstr("host memory"),
                    HasSubstr("give it as a host tensor")));
  EXPECT_THAT(refusal(on_device, cuda_view(host.data(), 4)),
              HasSubstr("call, output: a tensor of 4 elements"));
  EXPECT_THAT(refusal(called_host, on_device),
              AllOf(HasSubstr("call, input: "), HasSubstr("lies on CUDA device 0"),
                    HasSubstr("cuda_view")));
  EXPECT_THAT(refusal(on_device, called_host), HasSubstr("call, output: "));
  EXPECT_THAT(refusal(on_device, cuda_view(array.data(), 100000)),
              AllOf(HasSubstr("call, output: "), HasSubstr("its last byte")));
  EXPECT_THAT(
      refusal(on_device, cuda_view(array.data(), 2, 1)),
      AllOf(HasSubstr("CUDA device 0"), HasSubstr("CUDA device 1"), HasSubstr("on the same")));
  EXPECT_THAT(refusal(cuda_view(array.data(), 2, 2), {}), HasSubstr("this process has 2"));
}

TEST_F(BlockingCallTest, SaysWhichStreamCannotBeUsed) {
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const TensorView tensor = view_of(array);
  EXPECT_THAT(refusal(tensor, tensor, reinterpret_cast<void*>(2)),
              HasSubstr("cudaStreamPerThread"));
  {
    const Gpu other(1, CUDA_STAND_IN);
    const GpuStream its(other);
    EXPECT_THAT(refusal(tensor, tensor, its.handle()),
                AllOf(HasSubstr("call: "), HasSubstr("belongs to another device")));
  }
  gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(stream_.handle(), 0);
  EXPECT_THAT(refusal(tensor, tensor, stream_.handle()), HasSubstr("captured into a CUDA graph"));
  void* graph = nullptr;
  gpu_.call<int(void*, void**)>("cuStreamEndCapture")(stream_.handle(), &graph);
  EXPECT_TRUE(stage(tensor, tensor, stream_.handle()).ok());
}

TEST_F(BlockingCallTest, SaysWhatIsMissingOrFails) {
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const TensorView tensor = view_of(array);
  const ConstTensorView input = tensor;
  Devices without_driver("/nowhere/libcuda.so.1");
  EXPECT_THAT(without_driver.stage("call", {&input, 1}, {&tensor, 1}, {}).status().message(),
              AllOf(HasSubstr("call: a tensor on CUDA device 0 was given"),
                    HasSubstr("there is no CUDA driver here")));
  ::setenv("CUDA_STAND_IN_FAIL", "cuMemHostAlloc:1", 1);
  EXPECT_THAT(refusal(tensor, tensor, nullptr, Code::kUnavailable),
              AllOf(HasSubstr("65536 bytes of pinned host memory"), HasSubstr("out of memory")));
  ::unsetenv("CUDA_STAND_IN_FAIL");
  const auto staged = stage(tensor, tensor);
  ::setenv("CUDA_STAND_IN_FAIL", "cuMemcpyDtoHAsync_v2:1", 1);
  EXPECT_THAT(staged.value()->read().message(),
              AllOf(HasSubstr("call: CUDA device 0: cuMemcpyDtoHAsync"), HasSubstr("illegal")));
  ::setenv("CUDA_STAND_IN_FAIL", "cuMemcpyHtoDAsync_v2:1", 1);
  EXPECT_THAT(write(*staged.value(), 4).message(), HasSubstr("cuMemcpyHtoDAsync"));
}

}  // namespace
}  // namespace elastic::device
