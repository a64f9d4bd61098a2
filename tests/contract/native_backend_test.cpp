#include <thread>

#include <gtest/gtest.h>

#include "backend_contract.hpp"
#include "calls.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/exchange.hpp"
#include "collectives/plan/ring.hpp"
#include "native_world.hpp"

namespace elastic::collectives {
namespace {

constexpr std::uint64_t kGeneration = 7;

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Wiring& wiring : all_wirings()) {
    all.push_back({wiring.name, [wiring](int size) {
                     // Short segments, so that moderate data has many of them.
                     NativeOptions options;
                     options.segment_bytes = 4096;
                     options.thresholds.swap_segment_bytes = 16 * 1024;
                     if (size % 2 == 0) options.thresholds.pairwise_ranks = size;
                     options.transfer_segment_bytes = 100'000;
                     return native_world(size, wiring, options);
                   }});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Native, BackendContract,
                         testing::Combine(testing::ValuesIn(subjects()), testing::Range(1, 7)),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Native, BackendDirectContract,
                         testing::Combine(testing::ValuesIn(subjects()), testing::Range(1, 7)),
                         name_of);

/// Rank 1 has sent everything that rank 0 needs, and dies before it confirms.
TEST(NativeReduceScatter, KeepsThePartWhenTheConfirmationFails) {
  constexpr std::size_t kCount = 1001;
  auto meshes = wire(2, all_wirings().front());
  const Call call = reduce_scatter_call(DType::kI32, kCount);
  std::thread dying([&call, mesh = std::move(meshes[1])] {
    Buffer data;
    data.resize(kCount * 4);
    fill(data, call.sections[0], contribution(1, kCount, DType::kI32));
    Executor executor(*mesh);
    // Before the first operation the ranks tell each other what their links can do: nothing.
    std::vector<std::uint64_t> ways(2);
    mesh->begin({kGeneration, 0, transport::OpTag::kRepair}, {});
    EXPECT_TRUE(executor
                    .run(Schedule(plan::direct_allgather(1, 2, sizeof(ways[0]))),
                         reinterpret_cast<std::byte*>(ways.data()))
                    .ok());
    mesh->begin({kGeneration, 0, transport::OpTag::kNormal}, call.fingerprint);
    const Schedule schedule(plan::ring_reduce_scatter(1, 2, {kCount, 4}, 256 * 1024));
    const Status status =
        executor.run(schedule, data.data(),
                     {.reduce = kernels::reduce(DType::kI32, ReduceOp::kSum), .element = 4});
    EXPECT_TRUE(status.ok()) << status.message();
    // Rank 0 confirms only after its part is complete.
    transport::Link& link = mesh->link(0);
    const std::size_t before = link.received();
    link.receive({});
    EXPECT_TRUE(mesh->run_until([&] { return link.received() > before; }).ok());
  });
  auto backend = make_native_backend(kGeneration, std::move(meshes[0]));
  Payload mine;
  mine.data.resize(kCount * 4);
  fill(mine.data, call.sections[0], contribution(0, kCount, DType::kI32));
  EXPECT_EQ(backend->run(0, call, mine).code(), Code::kPeerLost);
  dying.join();
  EXPECT_TRUE(mine.in_hand);
  std::vector<double> expected = combined(2, kCount, DType::kI32, ReduceOp::kSum);
  expected.resize(kCount / 2);
  EXPECT_EQ(values_of(mine.data.data(), DType::kI32, kCount / 2), expected);
}

}  // namespace
}  // namespace elastic::collectives
