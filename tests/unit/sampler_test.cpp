#include "elastic/sampler.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/error.hpp"

namespace elastic {
namespace {

using Workers = std::vector<WorkerId>;
using Samples = std::vector<std::size_t>;

Samples copy(std::span<const std::size_t> share) {
  return {share.begin(), share.end()};
}

Sampler sampler_of(std::size_t size, const Workers& members, WorkerId self) {
  Sampler sampler(size, 42);
  sampler.set_members(members, self);
  return sampler;
}

/// The log of `steps` steps that draw, and each `commits` or not.
std::string log_of(int steps, bool commits) {
  Sampler sampler = sampler_of(1000, {7, 8}, 8);
  testing::internal::CaptureStderr();
  for (int step = 0; step < steps; ++step) {
    sampler.next(2);
    if (commits) sampler.commit(Workers{7, 8});
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Sampler, WarnsOnceOfAForgottenCommit) {
  EXPECT_EQ(log_of(10, false), "") << "a step may be tried again";
  const std::string told = log_of(100, false);
  EXPECT_THAT(told, testing::HasSubstr("Sampler: 11 draws in a row gave the same samples"));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  EXPECT_EQ(log_of(100, true), "");
}

TEST(Sampler, SplitsTheTailEvenlyAndThenBeginsTheNextEpoch) {
  Sampler sampler = sampler_of(10, {7, 8, 9}, 8);
  EXPECT_EQ(sampler.next(2).size(), 2U);
  EXPECT_EQ(sampler.global_batch(), 6U);
  sampler.commit(Workers{7, 8, 9});
  EXPECT_EQ(sampler.done_in_epoch(), 6U);
  EXPECT_EQ(sampler.next(2).size(), 1U);  // 4 left for three: 2, 1, 1
  EXPECT_EQ(sampler.global_batch(), 4U);
  sampler.commit(Workers{7, 8, 9});
  EXPECT_EQ(sampler.done_in_epoch(), 10U);
  EXPECT_EQ(sampler.epoch(), 0U);
  sampler.next(2);
  EXPECT_EQ(sampler.epoch(), 1U);
  EXPECT_EQ(sampler.done_in_epoch(), 0U);
}

TEST(Sampler, IsFinishedWhenTheLastSampleOfTheLastEpochIsUsed) {
  Sampler sampler = sampler_of(4, {7}, 7);
  EXPECT_TRUE(sampler.finished(0));
  std::vector<std::size_t> used;
  for (; !sampler.finished(2); used.push_back(sampler.done_in_epoch())) {
    sampler.next(3);
    EXPECT_FALSE(sampler.finished(2)) << "an open draw counts as not used";
    sampler.commit(Workers{7});
  }
  EXPECT_EQ(used, (std::vector<std::size_t>{3, 4, 3, 4}));
  EXPECT_FALSE(sampler.finished(3));
  sampler.next(1);
  EXPECT_TRUE(sampler.finished(2));
}

TEST(Sampler, GivesEmptySharesWhereFewerSamplesThanMembersAreLeft) {
  Sampler sampler = sampler_of(2, {1, 2, 3}, 3);
  EXPECT_TRUE(sampler.next(5).empty());
  EXPECT_EQ(sampler.global_batch(), 2U);
}

TEST(Sampler, DrawsTheSameAgainWithoutCommit) {
  Sampler sampler = sampler_of(100, {1, 2}, 2);
  const Samples first = copy(sampler.next(8));
  const auto saved = sampler.save();
  EXPECT_EQ(copy(sampler.next(8)), first);
  EXPECT_EQ(sampler.save(), saved);
  EXPECT_EQ(sampler.done_in_epoch(), 0U);
  sampler.commit(Workers{1, 2});
  EXPECT_NE(copy(sampler.next(8)), first);
}

TEST(Sampler, ReturnsWhatALostMemberHadDrawn) {
  const Workers members{1, 2, 3};
  Sampler first = sampler_of(100, members, 1);
  Sampler second = sampler_of(100, members, 2);
  Sampler third = sampler_of(100, members, 3);
  first.next(10);
  const Samples lost = copy(second.next(10));
  third.next(10);
  first.commit(Workers{1, 3});
  third.commit(Workers{1, 3});
  EXPECT_EQ(first.done_in_epoch(), 20U);
  EXPECT_EQ(first.save(), third.save());
  EXPECT_EQ(copy(first.next(10)), lost);
  EXPECT_EQ(first.global_batch(), 20U);
}

Contributors contributors(Workers workers, std::uint64_t generation) {
  return {std::make_shared<const Workers>(std::move(workers)), generation};
}

TEST(Sampler, CountsSamplesAsUsedThatAreInAllOperationsOfAStep) {
  const Workers members{1, 2, 3, 4};
  Sampler first = sampler_of(100, members, 1);
  Sampler third = sampler_of(100, members, 3);
  Sampler second = sampler_of(100, members, 2);
  first.next(10);
  third.next(10);
  const Samples lost = copy(second.next(10));
  // Worker 2 died between the operations, and worker 4 after it. The ranks of the last view count.
  const Contributors all = contributors({1, 2, 3, 4}, 1);
  const Contributors three = contributors({4, 3, 1}, 2);
  const Contributors two = contributors({3, 1}, 3);
  first.commit({all, two, three});
  third.commit(std::vector<Contributors>{two, all, three, two});
  EXPECT_EQ(first.done_in_epoch(), 20U);
  EXPECT_EQ(first.save(), third.save());
  EXPECT_EQ((Workers{first.members().begin(), first.members().end()}), (Workers{3, 1}));
  third.next(10);
  EXPECT_EQ(copy(third.share(0)), lost);

  EXPECT_THROW(third.commit(std::span<const Contributors>()), Error);
  EXPECT_THROW(third.commit({contributors({1}, 1), contributors({3}, 2)}), Error);
  EXPECT_EQ(third.global_batch(), 20U);
}

TEST(Sampler, ContinuesOnAJoinerWhereTheMembersAre) {
  Sampler member = sampler_of(50, {1, 2}, 1);
  member.next(4);
  member.commit(Workers{1});
  Sampler joiner(50, 1000);  // another seed: the job's counts
  joiner.load(member.save());
  const Workers members{1, 9};
  member.set_members(members, 1);
  joiner.set_members(members, 9);
  Samples both = copy(member.next(23));
  const Samples other = copy(joiner.next(23));
  EXPECT_EQ(member.global_batch(), 46U);
  both.insert(both.end(), other.begin(), other.end());
  std::sort(both.begin(), both.end());
  EXPECT_EQ(std::unique(both.begin(), both.end()), both.end());
  EXPECT_EQ(both.size(), 46U);
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Sampler(0, 1), Error);
  Sampler sampler(10, 1);
  EXPECT_THROW(sampler.next(1), Error);
  EXPECT_THROW(sampler.set_members(Workers{1, 2}, 3), Error);
  EXPECT_THROW(sampler.set_members(Workers{1, 2, 1}, 1), Error);
  sampler.set_members(Workers{1, 2}, 1);
  EXPECT_THROW(sampler.next(0), Error);
  sampler.next(2);
  EXPECT_THROW(sampler.commit(Workers{}), Error);
  EXPECT_THROW(sampler.commit(Workers{5}), Error);
  EXPECT_EQ(sampler.global_batch(), 4U);

  const auto saved = sampler.save();
  EXPECT_THROW(Sampler(11, 1).load(saved), Error);
  EXPECT_THROW(sampler.load(std::span(saved).first(saved.size() - 1)), Error);
  auto broken = saved;
  broken[broken.size() - 8] = std::byte{11};  // the end of the only range, beyond the samples
  EXPECT_THROW(sampler.load(broken), Error);
  EXPECT_EQ(sampler.save(), saved);
}

TEST(Sampler, SurvivesBatchesNearTheLimitOfTheType) {
  Sampler sampler = sampler_of(10, {1, 2, 3}, 1);
  EXPECT_EQ(sampler.next(static_cast<std::size_t>(-1)).size(), 4U);
  EXPECT_EQ(sampler.global_batch(), 10U);
}

TEST(Sampler, GivesSharesThatDoNotDependOnTheMembers) {
  Sampler one = sampler_of(20, {5}, 5);
  Sampler many = sampler_of(20, {7, 8, 9}, 8);
  one.draw(4, 2);
  many.draw(4, 2);
  EXPECT_EQ(many.global_batch(), 8U);
  Samples all;
  for (std::size_t index = 4; index-- > 0;) {
    const Samples share = copy(one.share(index));
    EXPECT_EQ(share.size(), 2U);
    EXPECT_EQ(copy(many.share(index)), share);
    all.insert(all.end(), share.begin(), share.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_THROW(one.share(4), Error);
}

TEST(Sampler, DrawnForVirtualWorkersIsUsedWholeWhoeverIsLeft) {
  Sampler sampler = sampler_of(20, {7, 8, 9}, 8);
  sampler.draw(4, 4);
  sampler.commit(Workers{8, 9});
  EXPECT_EQ(sampler.done_in_epoch(), 16U);
  EXPECT_EQ((Workers{sampler.members().begin(), sampler.members().end()}), (Workers{8, 9}));
  sampler.draw(3, 2);  // 4 left for three: 2, 1, 1
  EXPECT_EQ(sampler.share(0).size(), 2U);
  EXPECT_EQ(sampler.share(2).size(), 1U);
  sampler.commit(Workers{8, 9});
  EXPECT_EQ(sampler.done_in_epoch(), 20U);
  EXPECT_THROW(sampler.draw(0, 1), Error);
  EXPECT_THROW(sampler.draw(1, 0), Error);
}

TEST(Sampler, RefusesToDistributeMoreThanThereIs) {
  EXPECT_EQ(Sampler(10, 1, 10).size(), 10U);
  EXPECT_EQ(Sampler(9, 1, 10).size(), 9U);
  try {
    Sampler(11, 1, 10);
    FAIL() << "11 samples of 10";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("give a size from 1 to 10"));
  }
}

TEST(Sampler, IsAFewIntegersHoweverManySamples) {
  constexpr std::size_t kMany = std::size_t{1} << 40;
  Sampler sampler = sampler_of(kMany, {1, 2}, 2);
  EXPECT_EQ(sampler.next(3).size(), 3U);
  sampler.commit(Workers{1, 2});
  EXPECT_LT(sampler.save().size(), 100U);
}

}  // namespace
}  // namespace elastic
