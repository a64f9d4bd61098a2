#include "base/config/node_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> parsed(const std::string& list) {
  const auto names = parse_node_list(list, "SLURM_STEP_NODELIST");
  EXPECT_TRUE(names.ok()) << names.status().message();
  return names.ok() ? names.value() : std::vector<std::string>();
}

TEST(NodeList, HasSingleNodes) {
  EXPECT_THAT(parsed("a"), ElementsAre("a"));
  EXPECT_THAT(parsed("a,login-2"), ElementsAre("a", "login-2"));
}

TEST(NodeList, ExpandsRangesInTheirOrder) {
  EXPECT_THAT(parsed("node[0-3,7]"), ElementsAre("node0", "node1", "node2", "node3", "node7"));
  EXPECT_THAT(parsed("b[2],a[9-10]"), ElementsAre("b2", "a9", "a10"));
}

TEST(NodeList, KeepsLeadingZeros) {
  EXPECT_THAT(parsed("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(parsed("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
}

TEST(NodeList, MayHaveSeveralRangesAndAnEndInOneName) {
  EXPECT_THAT(parsed("rack[1-2]n[3-4]-ib"),
              ElementsAre("rack1n3-ib", "rack1n4-ib", "rack2n3-ib", "rack2n4-ib"));
}

TEST(NodeList, NamesTheVariableThatIsWrong) {
  for (const char* wrong : {"", ",", "a,", "n[", "n]", "n[]", "n[1", "n[1-]", "n[-2]", "n[2-1]",
                            "n[x]", "n[1,]", "n[[1]]", "n[1-4000000000]", "n[0-99999][0-99999]"}) {
    const auto names = parse_node_list(wrong, "SLURM_STEP_NODELIST");
    ASSERT_FALSE(names.ok()) << wrong;
    EXPECT_EQ(names.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(names.status().message(),
                HasSubstr("SLURM_STEP_NODELIST is '" + std::string(wrong) + "'"));
  }
}

}  // namespace
}  // namespace elastic
