// When a call of some ranks is next in the order, and which submissions are refused.
#include "coordinator/group_orders.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "coordinator/group_names.hpp"

namespace elastic::coordinator {
namespace {

GroupRequest call_of(std::vector<int> ranks, const std::string& name = "sum",
                     std::uint64_t count = 3) {
  return {{name, kAllreduceRequest, ReduceOp::kSum, {{DType::kF32, count}}}, std::move(ranks)};
}

TEST(GroupOrdersTest, OrdersACallWhenItsLastRankHasSubmittedIt) {
  GroupOrders leader;
  EXPECT_FALSE(leader.submitted({4}, call_of({1, 4, 6})).value());
  EXPECT_FALSE(leader.submitted({1}, call_of({1, 4, 6})).value());
  EXPECT_FALSE(leader.submitted({1}, call_of({1, 2}, "other")).value());
  const auto order = leader.submitted({6}, call_of({1, 4, 6})).value();
  ASSERT_TRUE(order);
  EXPECT_EQ(order->call, call_of({1, 4, 6}));
  EXPECT_EQ(order->mismatch, "");
  EXPECT_TRUE(leader.submitted({2}, call_of({1, 2}, "other")).value());
}

TEST(GroupOrdersTest, NamesTwoRanksThatDiffer) {
  GroupOrders leader;
  const std::string sum = name_in_group(group_prefix("per host~0123abcd", 7), "sum");
  EXPECT_FALSE(leader.submitted({0}, call_of({0, 1, 2}, sum)).value());
  EXPECT_FALSE(leader.submitted({2}, call_of({0, 1, 2}, sum, 4)).value());
  const auto order = leader.submitted({1}, call_of({0, 1, 2}, sum)).value();
  ASSERT_TRUE(order);
  EXPECT_EQ(
      order->mismatch,
      "named allreduce 'sum' of the group 'per host': rank 0 submitted allreduce of 3 f32, sum, "
      "for "
      "ranks 0-2; rank 2 submitted allreduce of 4 f32, sum, for ranks 0-2");
}

TEST(GroupOrdersTest, WaitsForNoRankThatHasJoined) {
  GroupOrders leader;
  JoinedRanks joined;
  joined.restart(8);
  GroupRequest gather = call_of({1, 4}, "gather");
  gather.request.kind = kAllgatherRequest;
  EXPECT_FALSE(leader.submitted({1}, call_of({1, 4, 6}), joined).value());
  EXPECT_FALSE(leader.submitted({1}, gather, joined).value());
  EXPECT_FALSE(leader.submitted({2}, call_of({2, 6}, "other"), joined).value());
  ASSERT_TRUE(joined.add(4, 1).ok());
  const auto refused = leader.complete_but_for(joined);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused.front().mismatch.find("rank 4 has called join"), std::string::npos);
  const auto order = leader.submitted({6}, call_of({1, 4, 6}), joined).value();
  ASSERT_TRUE(order);
  EXPECT_EQ(order->mismatch, "");
  EXPECT_TRUE(GroupOrders().ordered(*order, 4, true).ok());
}

TEST(GroupOrdersTest, RefusesStrangersAndSubmissionsTwice) {
  GroupOrders leader;
  EXPECT_FALSE(leader.submitted({0}, call_of({0, 1})).value());
  EXPECT_EQ(leader.submitted({0}, call_of({0, 1})).status().code(), Code::kProtocol);
  EXPECT_EQ(leader.submitted({2}, call_of({0, 1})).status().code(), Code::kProtocol);
}

TEST(GroupOrdersTest, FreesANameWithItsResult) {
  GroupOrders own;
  EXPECT_TRUE(own.submit(call_of({0, 1})).ok());
  EXPECT_EQ(own.submit(call_of({0, 1})).code(), Code::kInvalidArgument);
  own.completed("sum");
  EXPECT_TRUE(own.submit(call_of({0, 1})).ok());
  own.restart();
  EXPECT_TRUE(own.submit(call_of({0})).ok());
}

TEST(GroupOrdersTest, KnowsWhichOrdersItsOwnRankIsIn) {
  GroupOrders own;
  EXPECT_TRUE(own.ordered({call_of({0, 2}), {}}, 1).ok());
  EXPECT_EQ(own.ordered({call_of({0, 1}), {}}, 1).code(), Code::kProtocol);
  EXPECT_TRUE(own.submit(call_of({0, 1})).ok());
  EXPECT_TRUE(own.ordered({call_of({0, 1}), {}}, 1).ok());
}

}  // namespace
}  // namespace elastic::coordinator
