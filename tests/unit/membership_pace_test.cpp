// Periods and limits that follow the size of the job.
#include "membership_fixture.hpp"

namespace elastic::rendezvous {
namespace {

class PaceTest : public MembershipTest {
 protected:
  Names start_many(int workers) {
    Names names;
    for (int i = 0; i < workers; ++i) names.push_back("w" + std::to_string(10000 + i));
    start_with(names);
    return names;
  }
};

TEST_F(PaceTest, ASmallJobHasTheOptionsPeriod) {
  start_many(60);
  EXPECT_EQ(last<Welcome>("w10000")->heartbeat_ms, 50);
  EXPECT_EQ(last<Announce>("w10000")->heartbeat_ms, 50);
}

TEST_F(PaceTest, ThePeriodOfALargeJobIsLongerAndSilenceIsJudgedByIt) {
  const Names names = start_many(250);
  EXPECT_EQ(last<Welcome>("w10000")->heartbeat_ms, 200);
  EXPECT_EQ(last<Announce>("w10000")->heartbeat_ms, 200);
  now_ += Milliseconds(700);
  for (std::size_t i = 1; i < names.size(); ++i) say(names[i], Heartbeat{1, {0, 0}});
  decide(Tick{});
  EXPECT_THAT(members(), SizeIs(250)) << "less than four periods";
}

}  // namespace
}  // namespace elastic::rendezvous
