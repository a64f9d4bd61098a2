// Which members the rules of groups choose.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "elastic/error.hpp"
#include "elastic/group.hpp"

namespace elastic {
namespace {

/// Ranks 0 to 6, whose ids are 10 times as large, on three hosts.
const std::vector<GroupMember> kMembers{{0, 5},  {10, 5}, {20, 2}, {30, 5},
                                        {40, 2}, {50, 9}, {60, 2}};

std::vector<WorkerId> chosen(const GroupRule& rule, WorkerId self,
                             const std::vector<GroupMember>& members = kMembers) {
  std::vector<WorkerId> ids;
  for (const GroupMember& each : rule.choose(members, self)) ids.push_back(each.id);
  return ids;
}

using Ids = std::vector<WorkerId>;

TEST(GroupRuleTest, ChoosesThoseOnTheSameHost) {
  for (const WorkerId self : {20U, 40U, 60U}) {
    EXPECT_EQ(chosen(GroupRule::per_host(), self), Ids({20, 40, 60}));
  }
  EXPECT_EQ(chosen(GroupRule::per_host(), 50), Ids({50}));
  EXPECT_EQ(chosen(GroupRule::per_host(), 99), Ids());  // no member
}

TEST(GroupRuleTest, ChoosesThoseWithTheSameRankOnTheirHosts) {
  EXPECT_EQ(chosen(GroupRule::across_hosts(), 50), Ids({0, 20, 50}));
  EXPECT_EQ(chosen(GroupRule::across_hosts(), 10), Ids({10, 40}));
  EXPECT_EQ(chosen(GroupRule::across_hosts(), 60), Ids({30, 60}));
}

TEST(GroupRuleTest, ChoosesRanks) {
  EXPECT_EQ(chosen(GroupRule::every(3), 0), Ids({0, 30, 60}));
  EXPECT_EQ(chosen(GroupRule::every(2, 5), 0), Ids({50}));
  EXPECT_EQ(chosen(GroupRule::every(2, 7), 0), Ids());
  EXPECT_EQ(chosen(GroupRule::ranks({6, 1, 17}), 0), Ids({10, 60}));
}

TEST(GroupRuleTest, KeepsTheOrderOfTheMembers) {
  EXPECT_EQ(chosen(GroupRule::workers({60, 0, 77}), 0), Ids({0, 60}));
  const GroupRule backwards = GroupRule::by("backwards", [](auto members, WorkerId) {
    Ids ids;
    for (const GroupMember& each : members) ids.push_back(each.id);
    std::reverse(ids.begin(), ids.end());
    return ids;
  });
  EXPECT_EQ(chosen(backwards, 0), Ids({0, 10, 20, 30, 40, 50, 60}));
}

TEST(GroupRuleTest, HasTheSameNameForTheSameMembers) {
  EXPECT_EQ(GroupRule::ranks({2, 0}).name(), GroupRule::ranks({0, 2}).name());
  EXPECT_EQ(GroupRule::workers({2, 5}).name(), GroupRule::workers({5, 2}).name());
  EXPECT_NE(GroupRule::ranks({0, 2}).name(), GroupRule::workers({0, 2}).name());
  EXPECT_NE(GroupRule::every(2).name(), GroupRule::every(2, 1).name());
}

/// \returns the text of the error that a rule is refused with.
std::string refusal_of(const std::function<void()>& make) {
  try {
    make();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "nothing";
}

TEST(GroupRuleTest, RefusesNumbersThatAreNoRanks) {
  EXPECT_NE(refusal_of([] { (void)GroupRule::every(0); }).find("step, 0"), std::string::npos);
  EXPECT_NE(refusal_of([] { (void)GroupRule::every(1, -2); }).find("-2"), std::string::npos);
  EXPECT_NE(refusal_of([] { (void)GroupRule::ranks({3, -1}); }).find("-1"), std::string::npos);
  EXPECT_NE(refusal_of([] { (void)GroupRule::ranks({3, 3}); }).find("twice"), std::string::npos);
}

TEST(GroupRuleTest, RefusesARuleWithoutNameOrFunction) {
  const auto none = [](auto, WorkerId) { return Ids(); };
  EXPECT_NE(refusal_of([&] { (void)GroupRule::by("", none); }).find("name"), std::string::npos);
  for (const GroupRule::Choose& choose : {GroupRule::Choose(), GroupRule::Choose(nullptr)}) {
    EXPECT_NE(
        refusal_of([&] { (void)GroupRule::by("mine", choose); }).find("'mine' needs a function"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace elastic
