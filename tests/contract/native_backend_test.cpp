#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "backend_contract.hpp"
#include "calls.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/backend/native/view_capabilities.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/ring.hpp"
#include "native_world.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives {
namespace {

constexpr std::uint64_t kGeneration = 7;

/// Short segments, so that moderate data has many of them.
NativeOptions short_segments() {
  NativeOptions options;
  options.segment_bytes = 4096;
  options.thresholds.exchange_segment_bytes = 16 * 1024;
  options.transfer_segment_bytes = 100'000;
  return options;
}

Subject subject(const Wiring& wiring) {
  return {wiring.name, [wiring](int size) {
            NativeOptions options = short_segments();
            if (size % 2 == 1) options.thresholds.two_shot_ranks = 0;
            return native_world(size, wiring, options);
          }};
}

/// Several hosts, and nothing so small that it would not be reduced inside them first.
Subject on_hosts(const char* name, int (*host_of)(int rank)) {
  return {name, [host_of](int size) {
            NativeOptions options = short_segments();
            options.thresholds.one_shot_ranks = 0;
            options.thresholds.hierarchical_bytes = 0;
            for (int rank = 0; rank < size; ++rank) options.hosts.push_back(host_of(rank));
            return native_world_of_hosts(options);
          }};
}

/// All sizes with the first wiring, and with the others those that tell them apart: one rank has no
/// links, and what depends on the number of ranks alone does not depend on what carries the bytes.
/// Sanitizers are slow with more ranks than cores.
std::vector<int> sizes_with(const Wiring& wiring) {
  const bool first = wiring.name == all_wirings().front().name;
  if (kSlowness > 1) return first ? std::vector{1, 2, 3} : std::vector{3};
  return first ? std::vector{1, 2, 3, 4, 5, 6} : std::vector{2, 3, 5};
}

std::vector<std::tuple<Subject, int>> worlds() {
  std::vector<std::tuple<Subject, int>> all;
  for (const Wiring& wiring : all_wirings()) {
    for (const int size : sizes_with(wiring)) all.emplace_back(subject(wiring), size);
  }
  return all;
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Wiring& wiring : all_wirings()) all.push_back(subject(wiring));
  return all;
}

std::vector<Subject> subjects_on_hosts() {
  return {on_hosts("pairs_of_ranks", [](int rank) { return rank / 2; }),
          on_hosts("two_hosts_in_turns", [](int rank) { return rank % 2; })};
}

Subject measured() {
  return {"measured", [](int size) {
            NativeOptions options = short_segments();
            options.record = std::make_shared<TuningRecord>();
            return native_world(size, all_wirings().front(), options);
          }};
}

/// Four flows between any two ranks, of which the measured number is used.
NativeOptions measures_flows(int size) {
  NativeOptions options = short_segments();
  options.measures_flows = true;
  options.record = std::make_shared<TuningRecord>();
  options.hosts.resize(static_cast<std::size_t>(size));
  std::iota(options.hosts.begin(), options.hosts.end(), 0);
  return options;
}

Subject measured_flows() {
  return {"measured_flows",
          [](int size) { return native_world_of_hosts(measures_flows(size), 4); }};
}

INSTANTIATE_TEST_SUITE_P(Native, BackendContract, testing::ValuesIn(worlds()), name_of);
INSTANTIATE_TEST_SUITE_P(Native, AdasumContract,
                         testing::Combine(testing::ValuesIn(subjects()), testing::Values(2, 3)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Sizes, AdasumContract,
                         testing::Combine(testing::Values(subject(all_wirings().front())),
                                          testing::Values(1, 4, 5, 6, 7, 8)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Native, BackendZeroCopyContract, testing::ValuesIn(worlds()), name_of);

/// Worlds of three ranks, one of which is alone on its host, and of four. Under sanitizers there is
/// one world of each size: the two kinds differ only in the placement of the ranks.
std::vector<std::tuple<Subject, int>> worlds_of_hosts() {
  const std::vector<Subject> kinds = subjects_on_hosts();
  if (kSlowness > 1) return {{kinds[0], 4}, {kinds[1], 3}};
  return {{kinds[0], 3}, {kinds[0], 4}, {kinds[1], 3}, {kinds[1], 4}};
}

/// Hosts of several sizes, whose ranks do not follow one another; and more of them than a power of
/// two.
std::vector<std::tuple<Subject, int>> worlds_of_uneven_hosts() {
  const Subject uneven = on_hosts("uneven_hosts", [](int rank) {
    constexpr std::array kHosts = {0, 0, 1, 0, 2, 1, 0, 3};
    return kHosts.at(static_cast<std::size_t>(rank));
  });
  const Subject pairs = subjects_on_hosts()[0];
  if (kSlowness > 1) return {{uneven, 5}};
  return {{uneven, 4}, {uneven, 5}, {uneven, 7}, {uneven, 8}, {pairs, 6}, {pairs, 8}};
}

INSTANTIATE_TEST_SUITE_P(OnUnevenHosts, AdasumContract, testing::ValuesIn(worlds_of_uneven_hosts()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OnHosts, AdasumContract, testing::ValuesIn(worlds_of_hosts()), name_of);
INSTANTIATE_TEST_SUITE_P(OnHosts, BackendContract, testing::ValuesIn(worlds_of_hosts()), name_of);
INSTANTIATE_TEST_SUITE_P(OnHosts, BackendZeroCopyContract, testing::ValuesIn(worlds_of_hosts()),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Measured, BackendContract,
                         testing::Combine(testing::Values(measured(), measured_flows()),
                                          testing::Values(1, 3)),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Shared, BackendZeroCopyContract,
                         testing::Combine(testing::Values(subject(arena_wiring())),
                                          testing::Values(1, 2, 3)),
                         name_of);

/// Two ranks on hosts of their own, with records of their own, and four flows between them.
class NativeFlows : public testing::Test {
 protected:
  NativeFlows() {
    for (NativeOptions& one : options_) one = measures_flows(2);
  }

  Tuning tuning(std::size_t rank) const { return options_[rank].record->latest(); }
  /// A barrier, in front of which they agree.
  void meet() {
    Wiring wiring = all_wirings().back();
    wiring.streams = 4;
    auto meshes = wire(2, wiring);
    const auto call = [&](std::size_t rank) {
      auto mesh = meshes[rank];
      auto backend = make_native_backend(kGeneration, mesh, options_[rank]);
      EXPECT_TRUE(backend->prepare(0).ok());
      in_use_[rank] = mesh->link(static_cast<int>(1 - rank)).flows_in_use();
    };
    std::thread other([&] { call(1); });
    call(0);
    other.join();
  }

  std::array<NativeOptions, 2> options_;
  std::array<std::size_t, 2> in_use_{};
};

TEST_F(NativeFlows, AllRanksUseTheSameNumber) {
  meet();
  EXPECT_EQ(in_use_[0], in_use_[1]);
  EXPECT_EQ(tuning(0).flows_opened, 4);
  EXPECT_EQ(tuning(0).flows_used, static_cast<int>(in_use_[0]));
  EXPECT_EQ(tuning(1).flows_used, tuning(0).flows_used);
}

TEST_F(NativeFlows, WhatAllKnowFromBeforeIsNotMeasuredAgain) {
  const plan::LinkCosts costs{{}, {70'000, 500'000}, 3};
  for (const NativeOptions& one : options_) one.record->set({}, costs);
  meet();
  EXPECT_EQ(in_use_[0], 3U);
  EXPECT_EQ(in_use_[1], 3U);
  EXPECT_EQ(tuning(1).flows_used, 3);
  EXPECT_DOUBLE_EQ(tuning(1).between_hosts.latency_us, 70);
}

TEST_F(NativeFlows, WhatOneDoesNotKnowIsMeasured) {
  options_[0].record->set({}, {{}, {70'000'000, 500'000}, 3});
  meet();
  EXPECT_EQ(in_use_[0], in_use_[1]);
  EXPECT_NE(in_use_[0], 3U) << "three of four are never tried";
}

TEST_F(NativeFlows, NonsenseThatAllKnowIsBounded) {
  for (const NativeOptions& one : options_) {
    one.record->set({}, {{}, {70'000, 500'000}, ~std::uint64_t{0}});
  }
  meet();
  EXPECT_EQ(in_use_[0], 4U);
  EXPECT_EQ(tuning(0).flows_used, 4);
}

TEST_F(NativeFlows, AllAreUsedWhereANumberWasAskedFor) {
  options_[1].measures_flows = false;
  meet();
  EXPECT_EQ(in_use_[0], 4U);
  EXPECT_EQ(in_use_[1], 4U);
  EXPECT_EQ(tuning(0).flows_used, 4);
}

/// No common plan is possible, but the error, too, is returned only after all ranks have entered.
TEST(NativeAlgorithm, ThatDiffersIsAnErrorInStep) {
  constexpr std::size_t kCalls = 3;
  auto meshes = wire(2, all_wirings().front());
  std::atomic<std::size_t> entered[2] = {};
  const auto call = [&](std::size_t rank) {
    NativeOptions options;
    if (rank == 0) options.thresholds.algorithm = plan::AllreduceAlgorithm::kRing;
    auto backend = make_native_backend(kGeneration, std::move(meshes[rank]), options);
    for (std::size_t position = 0; position < kCalls; ++position) {
      entered[rank] = position + 1;
      Payload payload;
      payload.data.resize(4);
      const Status status = backend->run(position, allreduce_call(DType::kI32, 1), payload);
      EXPECT_EQ(status.code(), Code::kMismatch) << status.message();
      EXPECT_GE(entered[1 - rank], position + 1);
    }
  };
  std::thread other([&] { call(1); });
  call(0);
  other.join();
}

/// Rank 1 has sent everything that rank 0 needs, and dies before it confirms.
TEST(NativeReduceScatter, KeepsThePartWhenTheConfirmationFails) {
  constexpr std::size_t kCount = 4001;  // less is reduced for all
  auto meshes = wire(2, all_wirings().front());
  const Call call = reduce_scatter_call(DType::kI32, kCount);
  std::thread dying([&call, mesh = std::move(meshes[1])] {
    Buffer data;
    data.resize(kCount * 4);
    fill(data, call.sections[0], contribution(1, kCount, DType::kI32));
    Executor executor(*mesh);
    mesh->begin({kGeneration, 0, transport::OpTag::kBeforeOperation}, {});
    const plan::Hosts host = plan::Hosts::one(2);
    PlanCache plans(1, host, NativeOptions().segment_bytes, {});
    EXPECT_TRUE(negotiate_capabilities(*mesh, executor, plans, host, {}, false).ok());
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
  EXPECT_TRUE(mine.own_block_complete());
  std::vector<double> expected = combined(2, kCount, DType::kI32, ReduceOp::kSum);
  expected.resize(kCount / 2);
  EXPECT_EQ(values_of(mine.data.data(), DType::kI32, kCount / 2), expected);
}

/// A view begins with them.
TEST(SmallAllreduce, OfManyRanksSendsFewMessages) {
  constexpr std::size_t kBytes = 104;
  for (const auto& [ranks, messages] : {std::pair{16, 15}, {64, 6}, {1000, 11}}) {
    for (const int rank : {0, ranks / 2, ranks - 1}) {
      PlanCache plans(rank, plan::Hosts::one_rank_each(ranks), NativeOptions().segment_bytes, {});
      EXPECT_LE(plans.small_allreduce(kBytes).sent_bytes(),
                static_cast<std::size_t>(messages) * kBytes)
          << "rank " << rank << " of " << ranks;
    }
  }
}

}  // namespace
}  // namespace elastic::collectives
