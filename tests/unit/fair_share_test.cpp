#include "collectives/model/fair_share.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace elastic::model {
namespace {

Activity activity(std::vector<Use> uses, double most_rate = 1e15) {
  Activity made{.left = 1, .most_rate = most_rate};
  for (const Use& use : uses) made.use(use.resource, use.per_byte);
  return made;
}

TEST(FairShare, GivesEqualRatesUntilSomethingIsUsedUp) {
  // Two over line 0, of which one also over line 1 with a third: the textbook's example.
  std::vector<Activity> activities{activity({{0, 1}}), activity({{0, 1}, {1, 1}}),
                                   activity({{1, 1}})};
  const std::vector<double> capacity{10, 4};
  FairShare().share(activities, capacity);
  EXPECT_DOUBLE_EQ(activities[0].rate, 8);
  EXPECT_DOUBLE_EQ(activities[1].rate, 2);
  EXPECT_DOUBLE_EQ(activities[2].rate, 2);
}

TEST(FairShare, LeavesToOthersWhatALimitedOneCannotUse) {
  std::vector<Activity> activities{activity({{0, 1}}, 1), activity({{0, 1}}), activity({{0, 2}})};
  FairShare().share(activities, std::vector<double>{10});
  EXPECT_DOUBLE_EQ(activities[0].rate, 1);
  EXPECT_DOUBLE_EQ(activities[1].rate, 3);
  EXPECT_DOUBLE_EQ(activities[2].rate, 3) << "needs twice as much for each byte";
}

}  // namespace
}  // namespace elastic::model
