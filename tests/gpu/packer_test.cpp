// How the table gets to the device: many tensors, many launches under way, and graphs.
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/gpu/pack_fixture.hpp"

namespace elastic::gpu {
namespace {

using kernels::device::pack_plan;

std::vector<std::size_t> small_counts(Draw& draw, std::size_t tensors, std::size_t bound) {
  std::vector<std::size_t> counts(tensors);
  for (std::size_t& count : counts) count = draw.below(bound);
  return counts;
}

PackCase many_tensors(Draw& draw, std::size_t tensors, std::size_t bound, Direction direction) {
  PackCase one =
      draw.place({DType::kF32, DType::kBF16}, direction, small_counts(draw, tensors, bound), false);
  one.scale = {0.5, 3};
  return one;
}

class PackTables : public PackKernels {};

TEST_F(PackTables, OfAnyLength) {
  Packer packer;
  for (const std::size_t tensors : {1U, 199U, 200U, 201U, 256U, 257U, 1000U, 70'000U}) {
    for (const Direction direction : {Direction::kPack, Direction::kUnpack}) {
      SCOPED_TRACE(std::to_string(tensors) + " tensors");
      Draw draw(tensors);
      const OnDevice on_device(many_tensors(draw, tensors, tensors > 1000 ? 4 : 300, direction),
                               draw);
      launch(packer, on_device.request());
      on_device.expect_done();
      if (HasFailure()) return;
    }
  }
}

TEST_F(PackTables, LongAfterShortAndShortAfterLong) {
  Packer packer;
  const Stream stream;
  Draw draw(1);
  std::vector<std::unique_ptr<OnDevice>> cases;
  for (const std::size_t tensors : {300U, 4000U, 300U, 10U, 4000U, 5000U}) {
    cases.push_back(
        std::make_unique<OnDevice>(many_tensors(draw, tensors, 50, Direction::kPack), draw));
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (const auto& one : cases) launch(packer, one->request(), stream.get());
  for (const auto& one : cases) one->expect_done();
}

/// Keeps what is on a stream behind it waiting until it ends.
class Blocked {
 public:
  explicit Blocked(cudaStream_t stream) : stream_(stream) {
    const auto wait = [](void* of) { static_cast<Blocked*>(of)->go_.get_future().wait(); };
    check(cudaLaunchHostFunc(stream, wait, this), "cudaLaunchHostFunc");
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;
  ~Blocked() {
    go_.set_value();
    static_cast<void>(cudaStreamSynchronize(stream_));
  }

 private:
  cudaStream_t stream_;
  std::promise<void> go_;
};

TEST_F(PackTables, LaunchesDoNotWaitForTheStream) {
  Packer packer;
  constexpr std::size_t kLaunches = 10;
  const Stream stream;
  Draw draw(2);
  std::vector<std::unique_ptr<OnDevice>> cases;
  for (std::size_t i = 0; i < kLaunches; ++i) {
    cases.push_back(
        std::make_unique<OnDevice>(many_tensors(draw, 500, 50, Direction::kPack), draw));
  }
  ASSERT_EQ(packer.prepare(pack_plan(cases.front()->request()), kLaunches), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  {
    const Blocked blocked(stream.get());
    for (const auto& one : cases) launch(packer, one->request(), stream.get());
    EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady);
  }
  for (const auto& one : cases) one->expect_done();
}

/// Captured launches, to be run again and again.
class Graph {
 public:
  Graph(const PackRequest& request, const Stream& stream) {
    const auto packer = std::make_unique<Packer>();  // not there any more when the graph runs
    check(packer->prepare(pack_plan(request), 1), "prepare");
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "capture");
    const cudaError_t launched = packer->launch(pack_plan(request), stream.get());
    check(cudaStreamEndCapture(stream.get(), &graph_), "end of capture");
    check(launched, "launch in a capture");
    check(cudaGraphInstantiateWithFlags(&runnable_, graph_, 0), "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    static_cast<void>(cudaGraphExecDestroy(runnable_));
    static_cast<void>(cudaGraphDestroy(graph_));
  }

  void run(const Stream& stream) const {
    check(cudaGraphLaunch(runnable_, stream.get()), "cudaGraphLaunch");
  }
  std::size_t nodes() const {
    std::size_t count = 0;
    check(cudaGraphGetNodes(graph_, nullptr, &count), "cudaGraphGetNodes");
    return count;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t runnable_ = nullptr;
};

TEST_F(PackTables, GraphsAreCapturedAndRunAgain) {
  for (const std::size_t tensors : {161U, 1000U}) {
    SCOPED_TRACE(std::to_string(tensors) + " tensors");
    Draw draw(tensors);
    OnDevice on_device(many_tensors(draw, tensors, 2000, Direction::kPack), draw);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const Stream stream;
    const Graph graph(on_device.request(), stream);
    EXPECT_EQ(graph.nodes(), tensors == 161 ? 1U : 5U);
    for (int run = 0; run < 3; ++run) {
      on_device.fill(draw);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      graph.run(stream);
      on_device.expect_done();
    }
  }
}

TEST_F(PackTables, LongTablesWhileAnotherStreamIsCaptured) {
  Packer packer;
  Draw draw(4);
  const OnDevice on_device(many_tensors(draw, 1000, 20, Direction::kPack), draw);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const Stream captured;
  const Stream stream;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(packer.prepare(pack_plan(on_device.request()), 0), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal), cudaSuccess);
  const cudaError_t launched = packer.launch(pack_plan(on_device.request()), stream.get());
  ASSERT_EQ(cudaStreamEndCapture(captured.get(), &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(launched, cudaSuccess);
  on_device.expect_done();
}

}  // namespace
}  // namespace elastic::gpu
