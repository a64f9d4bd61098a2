#include "runtime/step_contributors.hpp"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::runtime {
namespace {

Contributors made(std::uint64_t generation, std::vector<WorkerId> workers) {
  return {std::make_shared<const std::vector<WorkerId>>(std::move(workers)), generation};
}

using Indices = std::vector<std::size_t>;

TEST(StepContributors, NothingIsSummedAgainWithoutADeath) {
  EXPECT_EQ(to_sum_again({}), Indices());
  EXPECT_EQ(to_sum_again({made(3, {7, 8, 9}), made(3, {7, 8, 9})}), Indices());
}

TEST(StepContributors, AnotherViewOfTheSameMembersIsNoDeath) {
  EXPECT_EQ(to_sum_again({made(3, {7, 8}), made(4, {7, 8}), made(5, {7, 8})}), Indices());
}

TEST(StepContributors, WhatHasTheDeadMembersPartIsSummedAgain) {
  const std::vector<Contributors> all = {made(3, {7, 8, 9}), made(4, {7, 9}), made(3, {7, 8, 9}),
                                         made(5, {7, 9})};
  EXPECT_EQ(to_sum_again(all), (Indices{0, 2}));
  EXPECT_EQ(latest(all).generation(), 5U);
}

TEST(StepContributors, SeveralDeathsLeaveOneSet) {
  EXPECT_EQ(to_sum_again({made(3, {6, 7, 8}), made(4, {7, 8}), made(5, {8})}), (Indices{0, 1}));
}

TEST(StepContributors, ADeathWhileSumsAreMadeAgainRepeatsThem) {
  std::vector<Contributors> results = {made(3, {6, 7, 8}), made(4, {7, 8})};
  std::vector<Contributors> contributors;
  Indices summed;
  const auto finish = [&](std::vector<Contributors>& all) {
    all = results;
    return true;
  };
  // Worker 7 dies while the first tensor is summed again.
  const auto again = [&](std::size_t index) {
    summed.push_back(index);
    results[index] = made(5, {8});
  };
  EXPECT_TRUE(sum_over_the_same(contributors, finish, again));
  EXPECT_EQ(summed, (Indices{0, 1}));
  EXPECT_EQ(latest(contributors).generation(), 5U);
}

TEST(StepContributors, AFailureEndsTheStep) {
  std::vector<Contributors> contributors;
  const auto fail = [](std::vector<Contributors>& /*all*/) { return false; };
  const auto again = [](std::size_t /*index*/) { FAIL() << "nothing is summed again"; };
  EXPECT_FALSE(sum_over_the_same(contributors, fail, again));
}

}  // namespace
}  // namespace elastic::runtime
