// When a server leads, by its own clock and its lease.
#include "rendezvous/server/leadership.hpp"

#include <gtest/gtest.h>

namespace elastic::rendezvous {
namespace {

using std::chrono::seconds;

const TimePoint kStart{seconds(1000)};

TEST(LeadershipTest, LeadsWithALeaseOnly) {
  EXPECT_FALSE(Leadership().leads(kStart));
}

TEST(LeadershipTest, StopsBeforeTheLeaseEnds) {
  Leadership its;
  its.renewed(kStart, seconds(10));
  EXPECT_TRUE(its.leads(kStart));
  EXPECT_TRUE(its.leads(kStart + seconds(8)));
  EXPECT_FALSE(its.leads(kStart + seconds(9)));
  EXPECT_FALSE(its.leads(kStart + seconds(10)));
}

TEST(LeadershipTest, RenewsInTimeForASecondAttempt) {
  Leadership its;
  its.renewed(kStart, seconds(6));
  EXPECT_EQ(its.renew_at(), kStart + seconds(2));
  EXPECT_GE(its.ends() - its.renew_at(), seconds(3));
}

/// The answer may have taken long: the store counts from when the request arrived.
TEST(LeadershipTest, CountsFromTheRequest) {
  Leadership its;
  its.renewed(kStart, seconds(10));
  its.renewed(kStart + seconds(3), seconds(10));
  EXPECT_TRUE(its.leads(kStart + seconds(11)));
  EXPECT_FALSE(its.leads(kStart + seconds(12)));
}

TEST(LeadershipTest, LosesAtOnce) {
  Leadership its;
  its.renewed(kStart, seconds(10));
  its.lose();
  EXPECT_FALSE(its.leads(kStart));
}

}  // namespace
}  // namespace elastic::rendezvous
