// The tensors of an asynchronous allreduce in the memory of a stand-in for devices, on their way to
// the host and back. A program
// that accesses that memory without the driver's copies crashes.
#include <cstdlib>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/device/devices.hpp"
#include "collectives/device/staged_tensors.hpp"
#include "cuda/driver_calls.hpp"

namespace elastic::device {
namespace {

using ::testing::AllOf;
using testing::Gpu;
using testing::GpuArray;
using testing::GpuStream;
using ::testing::HasSubstr;
using testing::PinnedArray;

class AsynchronousCallTest : public ::testing::Test {
 protected:
  AsynchronousCallTest() : gpu_(0, CUDA_STAND_IN), stream_(gpu_), devices_(CUDA_STAND_IN) {}
  ~AsynchronousCallTest() override { ::unsetenv("CUDA_STAND_IN_FAIL"); }

  Result<std::shared_ptr<StagedTensors>> stage(std::span<const ConstTensorView> inputs,
                                               std::span<const TensorView> outputs,
                                               void* stream = nullptr,
                                               Fetch when = Fetch::kAtOnce) {
    auto staged = devices_.stage("call", inputs, outputs, {stream}, when);
    if (!staged.ok()) return staged;
    Status started = staged.value()->start();
    if (!started.ok()) return started;
    return staged;
  }
  auto stage(const std::vector<TensorView>& tensors, void* stream = nullptr) {
    return stage(std::vector<ConstTensorView>(tensors.begin(), tensors.end()), tensors, stream);
  }
  std::string refusal(const std::vector<TensorView>& tensors, void* stream = nullptr,
                      Code code = Code::kInvalidArgument) {
    const auto staged = stage(tensors, stream);
    EXPECT_EQ(staged.status().code(), code) << staged.status().message();
    return staged.status().message();
  }
  static TensorView view_of(const GpuArray<int>& array) {
    return cuda_view(array.data(), array.count());
  }
  static std::span<int> host_side(const StagedTensors& staged, std::size_t which = 0) {
    return {static_cast<int*>(staged.outputs()[which].data), staged.outputs()[which].count};
  }

  Gpu gpu_;
  GpuStream stream_;
  Devices devices_;
};

TEST_F(AsynchronousCallTest, GoToTheHostAndBack) {
  const std::vector<int> values{1, 2, 3, 4, 5};
  const GpuArray<int> in(gpu_, values, 3);
  const GpuArray<int> out(gpu_, std::vector<int>(5, -1));
  const ConstTensorView input = cuda_view(in.data(), 5);
  const TensorView output = view_of(out);
  const auto staged = stage({&input, 1}, {&output, 1}, stream_.handle());
  ASSERT_TRUE(staged.ok()) << staged.status().message();
  StagedTensors& tensors = *staged.value();
  ASSERT_TRUE(tensors.wait_for_arrival().ok());
  EXPECT_EQ(tensors.outputs()[0].device.kind, Device::Kind::kHost);
  EXPECT_EQ(tensors.inputs()[0].data, tensors.outputs()[0].data);
  EXPECT_THAT(host_side(tensors), ::testing::ElementsAreArray(values));
  for (int& value : host_side(tensors)) value *= 10;
  EXPECT_EQ(out.read(), std::vector<int>(5, -1)) << "nothing was sent back yet";
  ASSERT_TRUE(tensors.send_back().ok());
  ASSERT_TRUE(tensors.wait_until_back().ok());
  EXPECT_EQ(out.read(), (std::vector<int>{10, 20, 30, 40, 50}));
  EXPECT_EQ(in.read(), values);
}

TEST_F(AsynchronousCallTest, GoToTheHostOnDemandOnly) {
  const std::vector<int> values{1, 2, 3};
  const GpuArray<int> array(gpu_, values);
  std::vector<int> own{4};
  const std::vector<TensorView> tensors{view_of(array), view(std::span(own))};
  const std::vector<ConstTensorView> inputs(tensors.begin(), tensors.end());
  ::setenv("CUDA_STAND_IN_FAIL", "cuMemHostAlloc:1", 1);
  const auto staged = stage(inputs, tensors, stream_.handle(), Fetch::kOnDemand);
  ASSERT_TRUE(staged.ok()) << "host memory was allocated before it was needed";
  StagedTensors& its = *staged.value();
  ASSERT_TRUE(its.wait_for_arrival().ok());
  EXPECT_EQ(its.tensors()[0].given_input.data, array.data());
  EXPECT_EQ(its.inputs()[0].data, nullptr);
  EXPECT_EQ(its.outputs()[0].count, 3U);
  EXPECT_EQ(its.outputs()[1].data, own.data());
  EXPECT_THAT(its.fetch().message(), HasSubstr("out of memory"));
  ::unsetenv("CUDA_STAND_IN_FAIL");
  ASSERT_TRUE(its.fetch().ok());
  EXPECT_THAT(host_side(its), ::testing::ElementsAreArray(values));
  for (int& value : host_side(its)) value *= 10;
  ASSERT_TRUE(its.fetch().ok());
  EXPECT_EQ(host_side(its)[0], 10) << "what was fetched was fetched again";
  ASSERT_TRUE(its.send_back().ok());
  ASSERT_TRUE(its.wait_until_back().ok());
  EXPECT_EQ(array.read(), (std::vector<int>{10, 20, 30}));
}

/// The results are on the device already, so the host copies nothing.
TEST_F(AsynchronousCallTest, MayHaveBeenBroughtBackByOthers) {
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const ConstTensorView input = view_of(array);
  const TensorView output = view_of(array);
  const auto staged = stage({&input, 1}, {&output, 1}, nullptr, Fetch::kOnDemand);
  ASSERT_TRUE(staged.value()->wait_for_arrival().ok());
  staged.value()->are_back({});
  EXPECT_TRUE(staged.value()->send_back().ok());
  EXPECT_TRUE(staged.value()->wait_until_back().ok());
  staged.value()->are_back(Status(Code::kUnavailable, "a device that is broken"));
  EXPECT_EQ(staged.value()->send_back().message(), "a device that is broken");
}

TEST_F(AsynchronousCallTest, WaitForWhatTheirStreamHasToDo) {
  std::atomic<bool> gate{false};
  const std::vector<int> values{7, 8, 9};
  const GpuArray<int> array(gpu_, std::vector<int>{0, 0, 0});
  stream_.hold(gate);
  const PinnedArray<int> pinned(gpu_, values);
  stream_.write(array.address(), pinned);
  const auto staged = stage({view_of(array)}, stream_.handle());
  ASSERT_TRUE(staged.ok()) << staged.status().message();
  std::promise<void> arrived;
  staged.value()->when_arrived([&] { arrived.set_value(); });
  EXPECT_FALSE(staged.value()->arrival()) << "before the stream has come to it";
  gate = true;
  gate.notify_all();
  arrived.get_future().wait();
  ASSERT_TRUE(staged.value()->arrival());
  EXPECT_TRUE(staged.value()->arrival()->ok());
  EXPECT_THAT(host_side(*staged.value()), ::testing::ElementsAreArray(values));
}

TEST_F(AsynchronousCallTest, ResultsDoNotWaitForInputsThatComeLater) {
  std::atomic<bool> gate{false};
  const GpuArray<int> first(gpu_, std::vector<int>{1});
  const GpuArray<int> second(gpu_, std::vector<int>{2});
  const auto early = stage({view_of(first)}, stream_.handle());
  ASSERT_TRUE(early.value()->wait_for_arrival().ok());
  stream_.hold(gate);
  const auto late = stage({view_of(second)}, stream_.handle());
  host_side(*early.value())[0] = 11;
  EXPECT_TRUE(early.value()->send_back().ok());
  EXPECT_TRUE(early.value()->wait_until_back().ok());
  EXPECT_EQ(first.read(), std::vector<int>{11});
  gate = true;
  gate.notify_all();
  EXPECT_TRUE(late.value()->wait_for_arrival().ok());
}

TEST_F(AsynchronousCallTest, LeaveThoseOfTheHostWhereTheyAre) {
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const GpuArray<int> nothing(gpu_, std::vector<int>{});
  std::vector<int> own{3, 4};
  const auto staged =
      stage({view(std::span(own)), view_of(array), view_of(nothing), view_of(array)});
  ASSERT_TRUE(staged.ok()) << staged.status().message();
  ASSERT_TRUE(staged.value()->wait_for_arrival().ok());
  EXPECT_EQ(staged.value()->outputs()[0].data, own.data());
  EXPECT_EQ(host_side(*staged.value(), 1)[1], 2);
  EXPECT_EQ(staged.value()->outputs()[2].count, 0U);
  EXPECT_EQ(host_side(*staged.value(), 3)[0], 1);
}

TEST_F(AsynchronousCallTest, AreWhereTheyAreSaidToBe) {
  std::vector<int> host(4);
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  EXPECT_TRUE(devices_.check_host(cuda_view(array.data(), 2)).ok()) << "no device is open yet";
  EXPECT_THAT(refusal({cuda_view(host.data(), 4)}),
              AllOf(HasSubstr("a tensor of 4 elements"), HasSubstr("host memory")));
  EXPECT_THAT(refusal({cuda_view(array.data(), 2, 1)}), HasSubstr("lies on CUDA device 0"));
  EXPECT_THAT(refusal({cuda_view(array.data(), 100000)}), HasSubstr("its last byte"));
  EXPECT_THAT(refusal({cuda_view(array.data(), 2, 2)}),
              AllOf(HasSubstr("CUDA device 2"), HasSubstr("this process has 2")));
  EXPECT_THAT(refusal({view_of(array), cuda_view(array.data(), 2, 1)}),
              HasSubstr("a call for each device"));
  const TensorView on_host{array.data(), 2, DType::kI32, {}};
  EXPECT_THAT(refusal({view_of(array), on_host}), HasSubstr("lies on CUDA device 0"));
  EXPECT_THAT(devices_.check_host(on_host).message(), HasSubstr("lies on CUDA device 0"));
  EXPECT_TRUE(devices_.check_host(view(std::span(host))).ok());

  std::uint64_t managed = 0;
  Gpu::must("cuMemAllocManaged", gpu_.call<int(std::uint64_t*, std::size_t, unsigned)>(
                                     "cuMemAllocManaged")(&managed, 8, 1));
  EXPECT_TRUE(stage({cuda_view(reinterpret_cast<int*>(managed), 2)}).ok());
  EXPECT_TRUE(devices_.check_host({reinterpret_cast<int*>(managed), 2, DType::kI32, {}}).ok());
  gpu_.call<int(std::uint64_t)>("cuMemFree_v2")(managed);
}

TEST_F(AsynchronousCallTest, AreOnTheDeviceOfTheirStream) {
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const std::vector<TensorView> tensors{view_of(array)};
  EXPECT_TRUE(stage(tensors).ok()) << "the default stream";
  EXPECT_TRUE(stage(tensors, reinterpret_cast<void*>(1)).ok()) << "the same";
  EXPECT_THAT(refusal(tensors, reinterpret_cast<void*>(2)), HasSubstr("cudaStreamPerThread"));
  {
    const Gpu other(1, CUDA_STAND_IN);
    const GpuStream its(other);
    EXPECT_THAT(refusal(tensors, its.handle()),
                AllOf(HasSubstr("CUDA device 0"), HasSubstr("belongs to another device")));
  }
  gpu_.call<int(void*, int)>("cuStreamBeginCapture_v2")(stream_.handle(), 0);
  EXPECT_THAT(refusal(tensors, stream_.handle()), HasSubstr("captured into a CUDA graph"));
  {
    const GpuStream other(gpu_);
    const GpuArray<int> larger(gpu_, std::vector<int>(1000000));
    const auto meanwhile = stage({view_of(larger)}, other.handle());
    ASSERT_TRUE(meanwhile.ok()) << meanwhile.status().message();
    EXPECT_TRUE(meanwhile.value()->wait_for_arrival().ok());
  }
  void* graph = nullptr;
  gpu_.call<int(void*, void**)>("cuStreamEndCapture")(stream_.handle(), &graph);
  EXPECT_TRUE(stage(tensors, stream_.handle()).ok());
}

TEST_F(AsynchronousCallTest, SayWhatIsMissingOrFails) {
  const GpuArray<int> array(gpu_, std::vector<int>{1, 2});
  const ConstTensorView input = view_of(array);
  const TensorView output = view_of(array);
  Devices without_driver("/nowhere/libcuda.so.1");
  EXPECT_THAT(without_driver.stage("call", {&input, 1}, {&output, 1}, {}).status().message(),
              AllOf(HasSubstr("a tensor on CUDA device 0 was given"),
                    HasSubstr("there is no CUDA driver here")));
  ::setenv("CUDA_STAND_IN_FAIL", "cuMemHostAlloc:1", 1);
  EXPECT_THAT(refusal({view_of(array)}, nullptr, Code::kUnavailable),
              AllOf(HasSubstr("65536 bytes of pinned host memory"), HasSubstr("out of memory")));
  ::setenv("CUDA_STAND_IN_FAIL", "cuMemcpyHtoDAsync_v2:1", 1);
  const auto staged = stage({view_of(array)});
  ASSERT_TRUE(staged.value()->wait_for_arrival().ok());
  EXPECT_THAT(staged.value()->send_back().message(),
              AllOf(HasSubstr("CUDA device 0: cuMemcpyHtoDAsync"), HasSubstr("illegal memory")));
}

}  // namespace
}  // namespace elastic::device
