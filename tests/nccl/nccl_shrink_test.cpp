// Communicators that NCCL shrinks when a view has lost members, and what happens where it cannot.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"
#include "collectives/backend/nccl/communicator/view_communicators.hpp"
#include "nccl/nccl_allreduce_fixture.hpp"
#include "tests/slowness.hpp"

namespace elastic::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using How = NcclScript::Allreduce;
using Init = NcclScript::Init;

class NcclShrinkTest : public NcclAllreduceFixture {
 protected:
  void view(int size, std::uint64_t generation, milliseconds limit = milliseconds(60000)) {
    make(size, /*waits=*/true, generation, [=](NcclServices& its) {
      its.shrinks = true;
      its.deadlines.shrink = limit;
    });
  }
  /// A view of `size` ranks with a communicator.
  void begin_with(int size) {
    view(size, 7);
    EXPECT_TRUE(allreduce());
    ASSERT_EQ(nccl_->counts().inits, size);
  }
  /// The rank's process ends.
  void lose(int rank) {
    const auto at = static_cast<std::ptrdiff_t>(rank);
    backends_[static_cast<std::size_t>(rank)].reset();
    other_backends_[static_cast<std::size_t>(rank)].reset();
    const NcclServices& its = services_[static_cast<std::size_t>(rank)];
    its.communicators->end_retired(*its.reaper);
    expect_ok(its.reaper->wait());
    services_.erase(services_.begin() + at);
  }
  /// Ends a view of three, and the last one dies. `rank` is in a collective, and its abort waits
  /// for the others, as NCCL's may: `releaser_` ends that when all have begun theirs.
  void end_with_one_in_nccl(int rank) {
    nccl_->script(rank, {.abort_waits = true});
    const NcclServices& its = services_[static_cast<std::size_t>(rank)];
    {
      const auto shared = its.communicators->of("", {7, rank, 3}, its);
      const ViewCommunicator::Use use(*shared);
      for (auto& each : backends_) each->abort();
    }
    lose(2);
    releaser_ = std::thread([this] {
      until([this] { return nccl_->counts().aborts == 3; });
      nccl_->release();
    });
  }
  void expect_made(int inits, int shrinks) const {
    EXPECT_EQ(nccl_->counts().inits, inits);
    EXPECT_EQ(nccl_->counts().shrinks, shrinks);
  }

  std::thread releaser_;
};

class NcclShrinkWithoutTest : public NcclShrinkTest, public ::testing::WithParamInterface<int> {};

TEST_P(NcclShrinkWithoutTest, GoesOnWithAShrunkCommunicator) {
  begin_with(3);
  lose(GetParam());
  view(2, 8);
  EXPECT_TRUE(allreduce());
  EXPECT_TRUE(allreduce(with_casts(), ReduceOp::kAverage));
  expect_made(3, 2);
  EXPECT_EQ(nccl_->counts().ids, 1) << "an id that no rank uses leaves a thread and a port behind";
  until([&] { return nccl_->counts().aborts == 3; });  // the parents, once they are not needed
}

INSTANTIATE_TEST_SUITE_P(OneOfThree, NcclShrinkWithoutTest, ::testing::Values(0, 1, 2));

TEST_F(NcclShrinkTest, ShrinksWhatWasShrunk) {
  begin_with(4);
  lose(2);
  view(3, 8);
  EXPECT_TRUE(allreduce());
  lose(0);
  view(2, 9);
  EXPECT_TRUE(allreduce());
  expect_made(4, 5);
}

TEST_F(NcclShrinkTest, LosesTwoAtOnce) {
  begin_with(4);
  lose(3);
  lose(0);
  view(2, 8);
  EXPECT_TRUE(allreduce());
  expect_made(4, 2);
}

/// A view change that interrupts lanes without work for NCCL.
TEST_F(NcclShrinkTest, RetiresAnIdleCommunicatorWhereItsViewIsAborted) {
  begin_with(3);
  for (auto& each : backends_) each->abort();
  for (auto& each : other_backends_) each->abort();
  EXPECT_EQ(nccl_->counts().aborts, 0);
  lose(1);
  view(2, 8);
  EXPECT_TRUE(allreduce());
  expect_made(3, 2);
}

TEST_F(NcclShrinkTest, MakesOneAnewWithAJoiner) {
  begin_with(2);
  view(3, 8);
  EXPECT_TRUE(allreduce());
  expect_made(5, 0);
  EXPECT_EQ(nccl_->counts().aborts, 2);
}

TEST_F(NcclShrinkTest, MakesOneAnewWhereAJoinerReplacesTheLost) {
  begin_with(4);
  lose(1);
  lose(0);
  view(3, 8);  // the last of the three has no communicator
  EXPECT_TRUE(allreduce());
  expect_made(4 + 3, 0);
  EXPECT_EQ(nccl_->counts().ids, 2);
}

TEST_F(NcclShrinkTest, MakesOneAnewForTheSameRanks) {
  begin_with(2);
  view(2, 8);
  EXPECT_TRUE(allreduce());
  expect_made(4, 0);
}

TEST_F(NcclShrinkTest, MakesOneAnewForALoneRank) {
  begin_with(2);
  lose(0);
  view(1, 8);
  EXPECT_TRUE(allreduce());
  expect_made(3, 0);
}

class NcclShrinkLackingTest : public NcclShrinkTest, public ::testing::WithParamInterface<int> {};

/// Its NCCL may be too old, or its user may have chosen so.
TEST_P(NcclShrinkLackingTest, MakesOneAnewWhereARankCannotShrink) {
  begin_with(3);
  lose(2);
  const auto lacking = static_cast<std::size_t>(GetParam());
  // The settings that count are those of the view that ends.
  backends_.clear();
  other_backends_.clear();
  NcclServices& its = services_[lacking];
  its.communicators->end_retired(*its.reaper);
  view(2, 8);
  EXPECT_TRUE(allreduce());
  expect_made(3 + 2, 0);
  EXPECT_EQ(nccl_->counts().ids, 2);
}

INSTANTIATE_TEST_SUITE_P(OneOfTwo, NcclShrinkLackingTest, ::testing::Values(0, 1));

TEST_F(NcclShrinkTest, IsOffWhereItIsNotAskedFor) {
  make(3, /*waits=*/true);
  EXPECT_TRUE(allreduce());
  lose(2);
  make(2, /*waits=*/true, 8);
  EXPECT_TRUE(allreduce());
  expect_made(5, 0);
}

class NcclShrinkFailingTest : public NcclShrinkTest, public ::testing::WithParamInterface<Init> {};

TEST_P(NcclShrinkFailingTest, MakesOneAnewWhereARankFailsToShrink) {
  begin_with(3);
  nccl_->script(2, {.shrink = GetParam()});
  lose(0);
  // Long enough for the ranks that do not fail, where one fails early.
  view(2, 8, GetParam() == Init::kNeverDone ? milliseconds(300) : milliseconds(2000) * kSlowness);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(allreduce());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("nccl, generation 8: it is not shrunk, but made anew: "));
  expect_made(3 + 2, 2);
  nccl_->script(2, {});
  EXPECT_TRUE(allreduce());
}

INSTANTIATE_TEST_SUITE_P(OfOneRank, NcclShrinkFailingTest,
                         ::testing::Values(Init::kFailsAtOnce, Init::kFailsLater, Init::kNeverDone),
                         [](const auto& param) {
                           return param.param == Init::kFailsAtOnce  ? "AtOnce"
                                  : param.param == Init::kFailsLater ? "Later"
                                                                     : "InSilence";
                         });

/// Such as that of a connection to the lost rank: NCCL would refuse to shrink it.
TEST_F(NcclShrinkTest, MakesOneAnewWhereARanksCommunicatorHasAnError) {
  begin_with(3);
  nccl_->script(1, {.error_of_size = 3});
  lose(2);
  view(2, 8);
  EXPECT_TRUE(allreduce());
  expect_made(3 + 2, 0);
}

/// One of four ranks dies, and another while NCCL shrinks the communicator.
TEST_F(NcclShrinkTest, MakesOneAnewAfterASecondDeathMeanwhile) {
  begin_with(4);
  for (const int rank : {1, 2, 3}) nccl_->script(rank, {.shrink = Init::kNeverDone});
  lose(0);
  view(3, 8);
  const auto outcome = begin({{DType::kF32, 3000}});
  while_one_ends(
      2, [&] { return nccl_->counts().shrinks == 3; },
      [&](int rank) { run_on(rank, *outcome, ReduceOp::kSum); });
  for (const Status& each : outcome->statuses) EXPECT_FALSE(each.ok());
  lose(2);
  view(2, 9);
  EXPECT_TRUE(allreduce());
  expect_made(4 + 2, 3);
}

/// Its work on the device would not end otherwise.
TEST_F(NcclShrinkTest, AbortsACommunicatorThatIsInUse) {
  nccl_->script(1, {.allreduce = How::kHangs});
  view(3, 7);
  const auto outcome = begin({{DType::kF32, 3000}});
  std::thread aborter([&] {
    until([&] { return nccl_->counts().allreduces == 3; });
    for (auto& each : backends_) each->abort();
  });
  on_all_ranks([&](int rank) { run_on(rank, *outcome, ReduceOp::kSum); });
  aborter.join();
  for (const Status& each : outcome->statuses) EXPECT_EQ(each.code(), Code::kAborted);
  EXPECT_EQ(nccl_->counts().aborts, 3);
  nccl_->script(1, {});
  lose(2);
  view(2, 8);
  EXPECT_TRUE(allreduce());
  expect_made(5, 0);
}

TEST_F(NcclShrinkTest, KeepsNoCommunicatorForWhichTheAbortOfAnotherRankWaits) {
  begin_with(3);
  end_with_one_in_nccl(0);
  view(2, 8);
  EXPECT_TRUE(allreduce());
  releaser_.join();
  expect_made(3 + 2, 0);
}

/// Rank 0 has begun the next communicator when rank 1 finds that it cannot.
TEST_F(NcclShrinkTest, DropsACommunicatorWithAParentForWhichTheAbortOfAnotherRankWaits) {
  begin_with(3);
  end_with_one_in_nccl(1);
  view(2, 8);
  const auto shared = services_[0].communicators->of("", {8, 0, 2}, services_[0]);
  expect_ok(shared->begin(services_[0].devices->open(0).value(), ViewCommunicator::Device::kKnown));
  EXPECT_TRUE(allreduce());
  releaser_.join();
  expect_made(3 + 2, 0);
}

/// Rank 0 has begun the next communicator, and rank 1 is idle or late: a third one's abort may wait
/// for the parent.
TEST_F(NcclShrinkTest, EndsAParentThatWasKeptForTooLong) {
  make(3, /*waits=*/true, 7, [](NcclServices& its) {
    its.shrinks = true;
    its.deadlines.kept = milliseconds(100) * kSlowness;
  });
  EXPECT_TRUE(allreduce());
  for (auto& each : backends_) each->abort();
  lose(2);
  view(2, 8);
  const auto shared = services_[0].communicators->of("", {8, 0, 2}, services_[0]);
  expect_ok(shared->begin(services_[0].devices->open(0).value(), ViewCommunicator::Device::kKnown));
  until([&] { return nccl_->counts().aborts == 3; });
  EXPECT_TRUE(allreduce());
  expect_made(3 + 2, 0);
}

/// An idle job, or one whose steps are long: another rank's abort may wait for it.
TEST_F(NcclShrinkTest, EndsACommunicatorThatWasKeptForTooLong) {
  make(3, /*waits=*/true, 7, [](NcclServices& its) {
    its.shrinks = true;
    its.deadlines.kept = milliseconds(20);
  });
  EXPECT_TRUE(allreduce());
  for (auto& each : backends_) each->abort();
  until([&] { return nccl_->counts().aborts == 3; });
  lose(2);
  view(2, 8);
  EXPECT_TRUE(allreduce());
  expect_made(3 + 2, 0);
}

}  // namespace
}  // namespace elastic::collectives::nccl
