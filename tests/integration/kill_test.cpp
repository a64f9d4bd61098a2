// A random worker is killed at a random moment of a stream of allreduces.
#include <vector>

#include <gtest/gtest.h>

#include "integration/one_kill.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

class KillTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(KillTest, SurvivorsAgreeOnEverySum) {
  several_kills(GetParam(), 8);
}

/// As in a large job, where a worker has links with few others, and makes the rest when an
/// operation or a repair needs them.
TEST(KillTestLinkedAsNeeded, SurvivorsAgreeOnEverySum) {
  for (const Scenario& each :
       {Scenario{"mixed", "tcp"}, Scenario{"mixed", "shm"}, Scenario{"groups", "tcp"}}) {
    Scenario scenario = each;
    scenario.environment = {"ELASTIC_ALL_LINKED=0"};
    scenario.ranks = 6;
    several_kills(scenario, 4);
  }
}

/// Several threads of each rank move the bytes of large tensors.
TEST(KillTestWithThreads, SurvivorsAgreeOnEverySum) {
  Scenario scenario{"mixed", "tcp"};
  scenario.most_elements = 4'000'000;
  scenario.environment = {"ELASTIC_TCP_STREAMS=5", "ELASTIC_TCP_THREADS=3"};
  several_kills(scenario, 4);
}

/// Under sanitizers every kind of call and every transport, but not all pairs of them.
std::vector<Scenario> streams() {
  std::vector<Scenario> all{Scenario{"blocking", "shm"},    Scenario{"named", "tcp"},
                            Scenario{"mixed", "auto"},      Scenario{"mixed", "tcp"},
                            Scenario{"mixed", "tcp", true}, Scenario{"moves", "shm"},
                            Scenario{"groups", "shm"},      Scenario{"groups", "tcp"}};
  if (kSlowness == 1) {
    all.insert(all.end(),
               {Scenario{"blocking", "tcp"}, Scenario{"blocking", "auto"}, Scenario{"named", "shm"},
                Scenario{"mixed", "shm"}, Scenario{"moves", "tcp"}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Streams, KillTest, ::testing::ValuesIn(streams()), [](const auto& param) {
  return param.param.mode + "_" + param.param.transport + (param.param.encrypt ? "_encrypted" : "");
});

}  // namespace
}  // namespace elastic::testing
