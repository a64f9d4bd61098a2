// The names of a group's calls, which are the same on its members.
#include "runtime/group_membership.hpp"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::runtime {
namespace {

constexpr WorkerId kSelf = 7;

std::shared_ptr<const Roster> roster_of_workers(const std::vector<WorkerId>& workers) {
  auto roster = std::make_shared<Roster>();
  for (const WorkerId id : workers) roster->members.push_back({id, 0});
  return roster;
}

class GroupMembershipTest : public testing::Test {
 protected:
  void meet(const std::vector<WorkerId>& workers, std::uint64_t joins = 0) {
    roster_ = roster_of_workers(workers);
    group_.renew(roster_, kSelf, joins);
  }
  static std::string number_of(const std::string& name) { return name.substr(name.rfind('/') + 1); }

  GroupMembership group_{{GroupRule::every(2)}};
  std::shared_ptr<const Roster> roster_;
};

TEST_F(GroupMembershipTest, CallsWithoutANameAreNumberedForEachSetOfMembers) {
  meet({7, 8, 9});
  const std::string first = group_.name_call("");
  EXPECT_EQ(number_of(first), "#1");
  EXPECT_EQ(number_of(group_.name_call("")), "#2");
  meet({7, 8, 10});
  const std::string of_others = group_.name_call("");
  EXPECT_EQ(number_of(of_others), "#1");
  EXPECT_NE(of_others, first);
  meet({7, 8, 9});
  EXPECT_EQ(number_of(group_.name_call("")), "#3");
}

TEST_F(GroupMembershipTest, TheyAreNumberedAnewAfterAJoin) {
  meet({7, 8, 9});
  const std::string first = group_.name_call("");
  group_.renew(roster_, kSelf, 1);
  EXPECT_EQ(group_.name_call(""), first);
}

/// The other members may have been in time, and wait for this one in the same call.
TEST_F(GroupMembershipTest, ACallThatTimedOutBeforeItBeganIsMadeAgainAsTheSame) {
  meet({7, 8, 9});
  (void)group_.name_call("");
  const std::string late = group_.name_call("");
  group_.forget_call(late);
  EXPECT_EQ(group_.name_call(""), late);
}

TEST_F(GroupMembershipTest, ACallBeforeTheLatestIsNotForgotten) {
  meet({7, 8, 9});
  const std::string first = group_.name_call("");
  const std::string second = group_.name_call("");
  group_.forget_call(first);
  EXPECT_EQ(number_of(group_.name_call("")), "#3");
  EXPECT_EQ(number_of(second), "#2");
}

TEST_F(GroupMembershipTest, NamedCallsHaveNoNumber) {
  meet({7, 8, 9});
  const std::string named = group_.name_call("loss");
  EXPECT_EQ(number_of(named), ":loss");
  group_.forget_call(named);
  EXPECT_EQ(group_.name_call("loss"), named);
  EXPECT_EQ(number_of(group_.name_call("")), "#1");
}

}  // namespace
}  // namespace elastic::runtime
