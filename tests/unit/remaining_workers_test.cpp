#include "rendezvous/server/remaining_workers.hpp"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace elastic::rendezvous {
namespace {

using Leaving = std::map<std::string, std::int64_t>;

constexpr bool kJoinable = true;

/// Two members on each launcher.
std::vector<PlacedMember> two_on_each(int launchers) {
  std::vector<PlacedMember> members;
  for (int launcher = 0; launcher < launchers; ++launcher) {
    members.insert(members.end(), 2, PlacedMember{launcher});
  }
  return members;
}

TEST(RemainingWorkers, AreAllWhereNothingLeaves) {
  const auto all = remaining_workers(two_on_each(2), {{0, "a", 2}, {1, "b", 2}}, kJoinable);
  EXPECT_EQ(all.count, 4);
  EXPECT_EQ(all.surplus, 0);
  EXPECT_EQ(leaving_text(all), "");
}

TEST(RemainingWorkers, AreNoneWhereAllHostsAreDrained) {
  const auto none = remaining_workers(two_on_each(2), {{0, "a", 0}, {1, "b", 0}}, kJoinable);
  EXPECT_EQ(none.count, 0);
  EXPECT_EQ(none.surplus, 4);
  EXPECT_EQ(none.leaving, (Leaving{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(leaving_text(none), "; leaving already: 2 of a, 2 of b");
}

/// Three hosts with two workers each, and --min-np 3: the second drain is one too many.
TEST(RemainingWorkers, AreThoseOfTheLastHostWhereTwoOfThreeAreDrained) {
  const auto two =
      remaining_workers(two_on_each(3), {{0, "a", 0}, {1, "b", 0}, {2, "c", 2}}, kJoinable);
  EXPECT_EQ(two.count, 2);
}

TEST(RemainingWorkers, HaveReplacementsAsFarAsThereIsRoom) {
  const std::vector<WorkerPlace> places{{0, "a", 0}, {1, "b", 2}, {2, "c", 1}};
  EXPECT_EQ(remaining_workers(two_on_each(2), places, kJoinable).count, 3);
  EXPECT_EQ(remaining_workers(two_on_each(2), places, !kJoinable).count, 2);
  std::vector<WorkerPlace> quarantined = places;
  quarantined[2].open = false;
  EXPECT_EQ(remaining_workers(two_on_each(2), quarantined, kJoinable).count, 2);
  std::vector<WorkerPlace> unlimited = places;
  unlimited[2].slots = std::numeric_limits<int>::max();
  EXPECT_EQ(remaining_workers(two_on_each(2), unlimited, kJoinable).count, 4);
}

/// The room of one host is not there twice.
TEST(RemainingWorkers, ShareTheRoomBetweenDrains) {
  const std::vector<WorkerPlace> places{{0, "a", 0}, {1, "b", 0}, {2, "c", 3}};
  EXPECT_EQ(remaining_workers(two_on_each(2), places, kJoinable).count, 3);
  std::vector<PlacedMember> one_has_joined = two_on_each(2);
  one_has_joined.push_back({2});
  EXPECT_EQ(remaining_workers(one_has_joined, places, kJoinable).count, 3);
}

TEST(RemainingWorkers, AreWithoutSingleMembersThatLeave) {
  std::vector<PlacedMember> members = two_on_each(2);
  members[3].leaves = true;
  members.push_back({-1, true});
  members.push_back({-1});
  const auto left = remaining_workers(members, {{0, "a", 2}, {1, "b", 2}}, kJoinable);
  EXPECT_EQ(left.count, 4) << "nothing replaces them";
  EXPECT_EQ(left.surplus, 0);
  EXPECT_EQ(left.count_leaving(), 2);
  EXPECT_EQ(leaving_text(left), "; leaving already: 1 without a launcher, 1 of b");
}

TEST(RemainingWorkers, CountAMemberOnceThatWasAskedAndWhoseHostIsDrained) {
  std::vector<PlacedMember> members = two_on_each(2);
  members[0].leaves = true;
  const auto left = remaining_workers(members, {{0, "a", 0}, {1, "b", 2}}, kJoinable);
  EXPECT_EQ(left.count, 2);
  EXPECT_EQ(left.leaving, (Leaving{{"a", 2}}));
}

TEST(RemainingWorkers, AreAsManyAsAHostWithFewerSlotsKeeps) {
  const auto left = remaining_workers(two_on_each(2), {{0, "a", 1}, {1, "b", 2}}, kJoinable);
  EXPECT_EQ(left.count, 3);
  EXPECT_EQ(left.leaving, (Leaving{{"a", 1}}));
}

/// A launcher that the server does not know (any more) was not told to have fewer.
TEST(RemainingWorkers, IncludeThoseOfUnknownLaunchers) {
  EXPECT_EQ(remaining_workers(two_on_each(2), {{0, "a", 2}}, kJoinable).count, 4);
}

}  // namespace
}  // namespace elastic::rendezvous
