// A random worker is killed at a random moment of a stream of compressed allreduces. Each survivor
// checks that every sum is that of its contributors, with what they had held back.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "integration/one_kill.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

class CompressionKillTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(CompressionKillTest, SurvivorsHaveTheContributorsSumBitForBit) {
  several_kills(GetParam(), 4);
}

Scenario stream(const std::string& compression, const std::string& transport) {
  return {.mode = compression, .transport = transport, .compressed = true};
}

std::vector<Scenario> streams() {
  std::vector<Scenario> all{stream("f16", "tcp"), stream("int8", "shm"), stream("two_bit:1", "tcp"),
                            stream("top_k:0.02:0.9:50", "tcp")};
  if (kSlowness == 1) {
    all.insert(all.end(), {stream("none", "shm"), stream("bf16", "shm"), stream("int8:100", "tcp"),
                           stream("two_bit:1", "shm"), stream("top_k:0.05", "auto")});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompressionKillTest, ::testing::ValuesIn(streams()),
                         [](const auto& param) {
                           std::string name = param.param.mode + "_" + param.param.transport;
                           std::ranges::replace_if(
                               name,
                               [](char character) { return character == ':' || character == '.'; },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace elastic::testing
