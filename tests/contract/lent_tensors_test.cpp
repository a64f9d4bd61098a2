// Calls whose tensors are lent: read and written in the caller's memory.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "backend_contract.hpp"
#include "calls.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/plan_cache.hpp"
#include "collectives/backend/native/view_capabilities.hpp"
#include "native_world.hpp"

namespace elastic::collectives {
namespace {

constexpr DType kLentType = DType::kI32;
constexpr std::size_t kLentCount = 40'003;  // more than is packed
constexpr std::uint64_t kView = 7;

using Tensor = std::vector<std::int32_t>;

std::span<std::byte> bytes_of(Tensor& tensor) {
  return std::as_writable_bytes(std::span(tensor));
}

/// The tensor that rank `rank` gives.
Tensor given_by(int rank) {
  Tensor tensor(kLentCount);
  std::iota(tensor.begin(), tensor.end(), rank * 1'000'000);
  return tensor;
}

class LentTensors : public testing::TestWithParam<std::tuple<bool, int>> {
 protected:
  LentTensors()
      : world_(native_world(size(), shared() ? arena_wiring() : all_wirings().front(), options())) {
  }
  static NativeOptions options() {
    NativeOptions options;
    options.segment_bytes = 16 * 1024;
    return options;
  }
  static bool shared() { return std::get<bool>(GetParam()); }
  static int size() { return std::get<int>(GetParam()); }

  /// Runs `call`, and returns the result. The input is lent, and `room` unless it is empty.
  Payload run(int rank, const Call& call, const Tensor& input, std::span<std::byte> room) {
    Payload payload;
    payload.lent = {std::as_bytes(std::span(input)), room};
    const Tensor before = input;
    expect_ok(world_.backends[static_cast<std::size_t>(rank)]->run(0, call, payload));
    EXPECT_EQ(input, before);
    EXPECT_TRUE(payload.of_this_rank());
    return payload;
  }
  template <typename Body>
  void on_all_ranks(const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back([&body, rank] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }

  World world_;
};

INSTANTIATE_TEST_SUITE_P(Native, LentTensors,
                         testing::Combine(testing::Bool(), testing::Values(2, 3, 5)),
                         [](const auto& world) {
                           return std::string(std::get<0>(world.param) ? "shm_" : "linked_") +
                                  std::to_string(std::get<1>(world.param));
                         });

void expect_result(const Payload& payload, const Tensor& expected) {
  ASSERT_EQ(payload.result().size(), expected.size() * sizeof(std::int32_t));
  EXPECT_EQ(std::memcmp(payload.result().data(), expected.data(), payload.result().size()), 0);
}

TEST_P(LentTensors, AreGathered) {
  Tensor expected;
  for (int rank = 0; rank < size(); ++rank) {
    const Tensor given = given_by(rank);
    expected.insert(expected.end(), given.begin(), given.end());
  }
  on_all_ranks([&](int rank) {
    Tensor room(expected.size());
    const Payload payload =
        run(rank, allgather_call(kLentType, kLentCount), given_by(rank), bytes_of(room));
    expect_result(payload, expected);
    EXPECT_EQ(payload.result().data(), bytes_of(room).data());
  });
}

TEST_P(LentTensors, AreReducedToTheRoot) {
  const int root = size() - 1;
  Tensor expected(kLentCount);
  for (int rank = 0; rank < size(); ++rank) {
    const Tensor given = given_by(rank);
    for (std::size_t i = 0; i < kLentCount; ++i) expected[i] += given[i];
  }
  on_all_ranks([&](int rank) {
    Tensor room(kLentCount, -1);
    const Payload payload =
        run(rank, reduce_call(kLentType, kLentCount, root), given_by(rank), bytes_of(room));
    if (rank == root) {
      expect_result(payload, expected);
      EXPECT_EQ(room, expected);
    } else {
      EXPECT_EQ(room, Tensor(kLentCount, -1)) << "the result is the root's alone";
    }
  });
}

TEST_P(LentTensors, AreReducedAndScattered) {
  on_all_ranks([&](int rank) {
    const auto parts = static_cast<std::size_t>(size());
    Tensor expected;
    for (std::size_t i = plan::part_begin(kLentCount, parts, static_cast<std::size_t>(rank));
         i < plan::part_begin(kLentCount, parts, static_cast<std::size_t>(rank) + 1); ++i) {
      std::int32_t sum = 0;
      for (int of = 0; of < size(); ++of) sum += of * 1'000'000 + static_cast<std::int32_t>(i);
      expected.push_back(sum);
    }
    Tensor room(kLentCount);
    const Payload payload =
        run(rank, reduce_scatter_call(kLentType, kLentCount), given_by(rank), bytes_of(room));
    expect_result(payload, expected);
    EXPECT_EQ(payload.result().data(), bytes_of(room).data());
  });
}

TEST_P(LentTensors, AreBroadcastByTheRoot) {
  const int root = size() / 2;
  on_all_ranks([&](int rank) {
    const Call call = broadcast_call(kLentType, kLentCount, root);
    if (rank == root) {
      run(rank, call, given_by(rank), {});
      return;
    }
    Payload payload;
    payload.data.resize(kLentCount * sizeof(std::int32_t));
    expect_ok(world_.backends[static_cast<std::size_t>(rank)]->run(0, call, payload));
    EXPECT_TRUE(payload.of_this_rank());
    expect_result(payload, given_by(root));
  });
}

/// The root, which has lent its tensor, may complete the call as the only rank and return. So the
/// others must have what it sent, although they do not know that it is complete.
TEST(LentBroadcast, KeepsTheResultWhenTheConfirmationFails) {
  auto meshes = wire(2, all_wirings().front());
  const Call call = broadcast_call(kLentType, kLentCount, 1);
  std::thread dying([&call, mesh = std::move(meshes[1])] {
    Tensor data = given_by(1);
    Executor executor(*mesh);
    mesh->begin({kView, 0, transport::OpTag::kBeforeOperation}, {});
    const plan::Hosts host = plan::Hosts::one(2);
    PlanCache plans(1, host, NativeOptions().segment_bytes, {});
    EXPECT_TRUE(negotiate_capabilities(*mesh, executor, plans, host, {}, false).ok());
    mesh->begin({kView, 0, transport::OpTag::kNormal}, call.fingerprint);
    expect_ok(executor.run(plans.barrier(), nullptr));
    expect_ok(executor.run(plans.broadcast(1, bytes_of(data).size()), bytes_of(data).data()));
    // Rank 0 confirms only after its data is complete.
    transport::Link& link = mesh->link(0);
    const std::size_t before = link.received();
    link.receive({});
    EXPECT_TRUE(mesh->run_until([&] { return link.received() > before; }).ok());
  });
  auto backend = make_native_backend(kView, std::move(meshes[0]));
  Payload mine;
  mine.data.resize(kLentCount * sizeof(std::int32_t));
  EXPECT_EQ(backend->run(0, call, mine).code(), Code::kPeerLost);
  dying.join();
  EXPECT_TRUE(mine.own_block_complete());
  expect_result(mine, given_by(1));
}

}  // namespace
}  // namespace elastic::collectives
