// Allreduces of tensors on a device by the backend nccl that begin while the one before is under
// way.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/backend/nccl/memory/shared_device.hpp"
#include "nccl/nccl_allreduce_fixture.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using How = NcclScript::Allreduce;

/// Runs of allreduces of which each rank knows the next one while it is in one.
class NcclEarlyTest : public NcclAllreduceFixture {
 protected:
  using Outcomes = std::vector<std::unique_ptr<Outcome>>;

  void make_world(int size, std::uint64_t generation = 7,
                  const std::function<void(NcclServices&)>& change = {}) {
    make(size, true, generation, [&](NcclServices& its) {
      // Without registered memory, whose results begin in their own time.
      if (ours_.insert(its.reaper).second) {
        its.devices = std::make_shared<SharedDevices>(CUDA_STAND_IN);
      }
      if (change) change(its);
    });
  }

  /// Tensors that are packed, but for those of every third allreduce, which NCCL reads in place.
  Outcomes begin_several(int count) {
    Outcomes all;
    for (int i = 0; i < count; ++i) {
      Shapes shapes{{DType::kF32, 1003 + static_cast<std::size_t>(i)}};
      if (i % 3 != 0) shapes.push_back({DType::kF32, 70000});
      all.push_back(begin(shapes));
    }
    return all;
  }

  /// Runs them one after another on one rank, as long as they succeed. `knows(i)`: the rank knows
  /// in the operation before that number i is next.
  void run_in_turn_on(int rank, Outcomes& all, const std::function<bool(std::size_t)>& knows) {
    const auto at = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i + 1 < all.size() && knows(i + 1)) backend(rank).expect(coming_on(at, *all[i + 1]));
      Outcome& present = *all[i];
      present.statuses[at] =
          backend(rank).run(position_ + i, present.tensors[at]->call(kOp), present.payloads[at]);
      backend(rank).expect({});
      if (!present.statuses[at].ok()) return;
    }
  }
  void run_in_turn(
      Outcomes& all, const std::function<bool(int rank, std::size_t i)>& knows =
                         [](int, std::size_t) { return true; }) {
    on_all_ranks([&](int rank) {
      run_in_turn_on(rank, all, [&](std::size_t i) { return knows(rank, i); });
    });
    position_ += all.size();
  }

  /// Runs the first two. Each rank is told the second one in the first, after `asked(rank)`.
  void run_two(Outcomes& all, const std::function<void(int rank)>& asked) {
    on_all_ranks([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      backend(rank).expect([&, rank, at] {
        asked(rank);
        return coming_on(at, *all[1])();
      });
      for (std::size_t i = 0; i < 2; ++i) {
        all[i]->statuses[at] =
            backend(rank).run(position_ + i, all[i]->tensors[at]->call(kOp), all[i]->payloads[at]);
        backend(rank).expect({});
      }
    });
    position_ += 2;
  }

  static Backend::Upcoming coming_on(std::size_t rank, Outcome& next) {
    return [rank, &next] {
      return Backend::Coming{next.tensors[rank]->call(kOp), next.payloads[rank].on_device()};
    };
  }

  /// How many of them were NCCL's. All are right.
  int expect_all_right(Outcomes& all) {
    int by_nccl = 0;
    for (const auto& each : all) by_nccl += expect_right(*each, kOp) ? 1 : 0;
    return by_nccl;
  }

  /// Holds the stream of each rank's lane until `open` is true.
  void hold_streams(const std::function<bool()>& open) {
    for (const NcclServices& each : services_) {
      auto* const gate = &gates_.emplace_back(open);
      const auto device = each.devices->open(0);
      const auto launch = gpu_.call<int(void*, void (*)(void*), void*)>("cuLaunchHostFunc");
      gpu_.must("cuLaunchHostFunc", launch(device.value()->stream(0).value(), &wait_at, gate));
    }
  }

  static constexpr ReduceOp kOp = ReduceOp::kAverage;

 private:
  static void wait_at(void* gate) { until(*static_cast<std::function<bool()>*>(gate)); }

  std::set<std::shared_ptr<CommunicatorReaper>> ours_;  // of ranks that have been made
  std::list<std::function<bool()>> gates_;
};

/// The device does not end the first one before NCCL has the second one on all ranks.
TEST_F(NcclEarlyTest, TheNextIsWithNcclBeforeThePresentOneHasEnded) {
  make_world(3);
  EXPECT_TRUE(allreduce());
  const int before = nccl_->counts().allreduces;
  auto all = begin_several(2);
  hold_streams([&] { return nccl_->counts().allreduces == before + 2 * 3; });
  run_in_turn(all);
  EXPECT_EQ(expect_all_right(all), 2);
  EXPECT_EQ(nccl_->counts().allreduces, before + 2 * 3) << "each once";
}

TEST_F(NcclEarlyTest, ManyInTurn) {
  for (const int size : {1, 2, 5}) {
    make_world(size, 7 + static_cast<std::uint64_t>(size));
    auto all = begin_several(12);
    run_in_turn(all);
    EXPECT_EQ(expect_all_right(all), 12);
  }
}

/// Then the ranks vote as if none had known it.
TEST_F(NcclEarlyTest, SomeRanksDoNotKnowTheNext) {
  make_world(3);
  auto all = begin_several(24);
  run_in_turn(all, [](int rank, std::size_t i) { return (i >> static_cast<unsigned>(rank)) % 2; });
  EXPECT_EQ(expect_all_right(all), 24);
  EXPECT_EQ(nccl_->counts().allreduces, 24 * 3) << "none twice";
}

/// NCCL takes the next one only when it has it from both. Rank 1 hears that rank 0 is ready for it
/// when it has ended the present one, and waits for rank 0 to end it.
TEST_F(NcclEarlyTest, BeginsTheNextWhereNcclWaitsForARankThatHasEndedThePresentOne) {
  make_world(2, 7, [](NcclServices& its) { its.operation = milliseconds(2000) * kSlowness; });
  EXPECT_TRUE(allreduce());
  for (const int rank : {0, 1}) nccl_->script(rank, {.connects_in = 2});
  auto all = begin_several(2);
  std::atomic<bool> asked{false};
  hold_streams([&] { return asked.load(); });
  run_two(all, [&](int rank) {
    if (rank == 1) {
      asked = true;
      return;
    }
    const auto mesh = meshes_[0].lock();
    until([&] {
      bool moved = false;
      return !mesh->progress(moved).ok() || mesh->link(1).received() == 2;
    });
  });
  EXPECT_EQ(expect_all_right(all), 2);
  EXPECT_EQ(nccl_->counts().aborts, 0);
}

TEST_F(NcclEarlyTest, IsTurnedOffOnOneRankForAll) {
  make_world(2);
  EXPECT_TRUE(allreduce());
  int made = 0;
  make_world(2, 8, [&](NcclServices& its) { its.overlaps = made++ != 1; });
  auto all = begin_several(2);
  run_two(all, [](int rank) { EXPECT_EQ(rank, 0) << "the other one is not asked"; });
  EXPECT_EQ(expect_all_right(all), 2);
}

TEST_F(NcclEarlyTest, OneThatNcclCannotPerformBeginsInItsOwnTime) {
  make_world(2);
  auto all = begin_several(2);
  all.push_back(begin({{DType::kU16, 70}}));
  all.push_back(begin({{DType::kF32, 7}}));
  run_in_turn(all);
  EXPECT_EQ(expect_all_right(all), 3);
}

TEST_F(NcclEarlyTest, ARankHasNoMemoryForTheNext) {
  make_world(3);
  EXPECT_TRUE(allreduce());
  Outcomes all;
  all.push_back(begin({{DType::kF32, 1000}}));
  all.push_back(begin({{DType::kF32, 300000}, {DType::kI64, 30}}));
  on_all_ranks([&](int rank) {
    if (rank == 1) leave_memory(4096);
    run_in_turn_on(rank, all, [](std::size_t) { return true; });
  });
  position_ += all.size();
  EXPECT_EQ(expect_all_right(all), 1);
  EXPECT_EQ(nccl_->counts().aborts, 0);
}

/// A rank with room for one bucket has it for one after the other. That is no shortage.
TEST_F(NcclEarlyTest, ARankHasMemoryForOneBucketOnly) {
  make_world(2);
  const Shapes large{{DType::kF32, 300000}, {DType::kF32, 30}};
  EXPECT_TRUE(allreduce(large, kOp));  // whose bucket the ranks keep
  Outcomes all;
  for (int i = 0; i < 5; ++i) all.push_back(begin(large));
  ::testing::internal::CaptureStderr();
  on_all_ranks([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (rank == 1) leave_memory(0);
      if (i + 1 < all.size()) backend(rank).expect(coming_on(at, *all[i + 1]));
      Outcome& present = *all[i];
      Payload& payload = present.payloads[at];
      expect_ok(backend(rank).run(position_ + i, present.tensors[at]->call(kOp), payload));
      EXPECT_NE(payload.device_result(), nullptr);
      expect_ok(present.tensors[at]->take(payload, kOp, size_));
      present.tensors[at]->expect(kOp, size_);
      payload.clear();
    }
  });
  position_ += all.size();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

class NcclFailingEarlyTest : public NcclEarlyTest,
                             public ::testing::WithParamInterface<std::tuple<How, int>> {};

/// Whether it is the present one that fails, or the next one.
TEST_P(NcclFailingEarlyTest, EndsInTheRightResultsByWayOfTheHost) {
  const auto [how, works] = GetParam();
  nccl_->script(1, {.allreduce = how, .works_before = works});
  make_world(3, 7, [](NcclServices& its) { its.operation = milliseconds(2000) * kSlowness; });
  auto all = begin_several(6);
  run_in_turn(all);
  const int by_nccl = expect_all_right(all);
  EXPECT_LE(by_nccl, works);
  EXPECT_GE(by_nccl, works - 1) << "a communicator that fails takes the one before with it";
}

INSTANTIATE_TEST_SUITE_P(OfOneRank, NcclFailingEarlyTest,
                         ::testing::Combine(::testing::Values(How::kFailsAtOnce, How::kFailsLater,
                                                              How::kHangs),
                                            ::testing::Values(0, 1, 2, 3)),
                         [](const auto& param) {
                           const How how = std::get<0>(param.param);
                           return std::string(how == How::kFailsAtOnce  ? "AtOnce"
                                              : how == How::kFailsLater ? "Later"
                                                                        : "InSilence") +
                                  "After" + std::to_string(std::get<1>(param.param));
                         });

/// Both are under way, and are attempted again from the same inputs.
TEST_F(NcclEarlyTest, LetsGoOfBothWhenTheViewChanges) {
  nccl_->script(1, {.allreduce = How::kHangs});
  make_world(3);
  auto all = begin_several(3);
  std::thread aborter([&] {
    until([&] { return nccl_->counts().allreduces == 6; });
    for (auto& each : backends_) each->abort();
  });
  run_in_turn(all);
  aborter.join();
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(all.front()->statuses[rank].code(), Code::kAborted);
    for (const auto& each : all) each->tensors[rank]->expect_untouched();
  }
  nccl_->script(1, {});
  make_world(3, 8);
  for (const auto& each : all) {
    for (std::size_t rank = 0; rank < 3; ++rank) each->tensors[rank]->give(each->payloads[rank]);
  }
  run_in_turn(all);
  EXPECT_EQ(expect_all_right(all), 3);
}

/// Its inputs and its bucket are free when `end_early` returns.
TEST_F(NcclEarlyTest, EndsOneThatWillNotBeRun) {
  nccl_->script(1, {.allreduce = How::kHangs, .works_before = 1});
  make_world(2);
  auto all = begin_several(2);
  hold_streams([&] { return nccl_->counts().allreduces == 2 * 2; });
  on_all_ranks([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    backend(rank).expect(coming_on(at, *all[1]));
    Outcome& first = *all[0];
    first.statuses[at] =
        backend(rank).run(position_, first.tensors[at]->call(kOp), first.payloads[at]);
    expect_ok(backend(rank).end_early());
    expect_ok(backend(rank).end_early());
  });
  EXPECT_EQ(nccl_->counts().aborts, 2);
  EXPECT_TRUE(expect_right(*all[0], kOp));
  for (const auto& each : all[1]->tensors) each->expect_untouched();
}

/// Rank 0 runs out of host memory, as it asks for the next one, and leaves.
TEST_F(NcclEarlyTest, TakesTheTensorsBackFromTheDeviceBeforeAnExceptionLeaves) {
  make_world(2);
  EXPECT_TRUE(allreduce());
  auto all = begin_several(1);
  std::atomic<bool> is_over{false};
  hold_streams([&] { return is_over || nccl_->counts().aborts > 0; });
  while_one_ends(
      0, [&] { return is_over.load(); },
      [&](int rank) {
        const auto at = static_cast<std::size_t>(rank);
        Outcome& its = *all[0];
        if (rank == 0)
          backend(0).expect([]() -> std::optional<Backend::Coming> { throw std::bad_alloc(); });
        const auto run = [&] {
          its.statuses[at] =
              backend(rank).run(position_, its.tensors[at]->call(kOp), its.payloads[at]);
        };
        if (rank == 1) return run();
        EXPECT_THROW(run(), std::bad_alloc);
        EXPECT_EQ(nccl_->counts().aborts, 1);
        its.tensors[0]->expect_untouched();
        is_over = true;
      });
  EXPECT_FALSE(all[0]->statuses[1].ok());
}

TEST_F(NcclEarlyTest, SeesAPeerDieBetweenTheTwo) {
  nccl_->script(2, {.allreduce = How::kHangs, .works_before = 1});
  make_world(3);
  auto all = begin_several(3);
  std::atomic<bool> is_between{false};  // rank 2 has ended the first one
  while_one_ends(
      2, [&] { return is_between && nccl_->counts().allreduces == 6; },
      [&](int rank) {
        run_in_turn_on(rank, all, [&](std::size_t i) {
          if (i == 2 && rank == 2) is_between = true;
          return i == 1;
        });
      });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(all[1]->statuses[rank].code(), Code::kPeerLost);
    all[1]->tensors[rank]->expect_untouched();
  }
}

}  // namespace
}  // namespace elastic::collectives::nccl
