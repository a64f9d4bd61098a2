// A random worker is killed at a random moment of a stream of allreduces.
#include <gtest/gtest.h>

#include "integration/one_kill.hpp"

namespace elastic::testing {
namespace {

class KillTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(KillTest, SurvivorsAgreeOnEverySum) {
  several_kills(GetParam(), 8);
}

INSTANTIATE_TEST_SUITE_P(Streams, KillTest,
                         ::testing::Values(Scenario{"blocking", "shm"}, Scenario{"blocking", "tcp"},
                                           Scenario{"named", "shm"}, Scenario{"named", "tcp"},
                                           Scenario{"mixed", "shm"}, Scenario{"mixed", "tcp"},
                                           Scenario{"blocking", "auto"}, Scenario{"mixed", "auto"},
                                           Scenario{"mixed", "tcp", true}, Scenario{"moves", "shm"},
                                           Scenario{"moves", "tcp"}),
                         [](const auto& param) {
                           return param.param.mode + "_" + param.param.transport +
                                  (param.param.encrypt ? "_encrypted" : "");
                         });

}  // namespace
}  // namespace elastic::testing
