// Every collective of the public API, by real processes under elasticrun.
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

struct World {
  std::string name;
  int ranks;
  std::vector<std::string> environment;
};

void PrintTo(const World& world, std::ostream* out) {
  *out << world.name;
}

/// `program` checks each result by itself, and leaves a hash over all.
void expect_right(const World& world, const std::string& program) {
  const ScratchFolder folder;
  std::vector<std::string> environment = world.environment;
  environment.push_back("XDG_RUNTIME_DIR=" + folder.path().string());
  Job job({ELASTICRUN, "-np", std::to_string(world.ranks), "--max-restarts", "0", program,
           folder.path().string()},
          folder.path() / "output", environment);
  const auto status = job.wait(milliseconds(60000) * kHangFactor);
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(*status, 0) << job.output();
  std::set<std::string> hashes;
  for (int rank = 0; rank < world.ranks; ++rank) {
    const std::string hash = read_file(folder.path() / std::to_string(rank));
    EXPECT_NE(hash.find("end"), std::string::npos) << "rank " << rank << "\n" << job.output();
    hashes.insert(hash);
  }
  EXPECT_EQ(hashes.size(), 1U) << "ranks have other results";
}

class CollectivesTest : public ::testing::TestWithParam<World> {};

TEST_P(CollectivesTest, AreRightAndTheSameOnAllRanks) {
  expect_right(GetParam(), COLLECTIVES_CHECK);
}

class IntegerTypesTest : public ::testing::TestWithParam<World> {};

TEST_P(IntegerTypesTest, WrapAroundAndAreTheSameOnAllRanks) {
  expect_right(GetParam(), INTEGER_TYPES_CHECK);
}

INSTANTIATE_TEST_SUITE_P(Worlds, IntegerTypesTest,
                         ::testing::Values(World{"alone", 1, {}},
                                           World{"three_over_shm", 3, {"ELASTIC_TRANSPORT=shm"}},
                                           World{"three_over_tcp", 3, {"ELASTIC_TRANSPORT=tcp"}}),
                         [](const auto& param) { return param.param.name; });

class FloatSumsTest : public ::testing::TestWithParam<World> {};

TEST_P(FloatSumsTest, AreWeighedAndScaledAlikeOnAllRanks) {
  expect_right(GetParam(), FLOAT_SUMS_CHECK);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, FloatSumsTest,
    ::testing::Values(World{"alone", 1, {}}, World{"three_over_shm", 3, {"ELASTIC_TRANSPORT=shm"}},
                      World{"five_over_tcp_linked_as_needed",
                            5,
                            {"ELASTIC_TRANSPORT=tcp", "ELASTIC_ALL_LINKED=0"}}),
    [](const auto& param) { return param.param.name; });

class GroupRoot : public ::testing::TestWithParam<const char*> {};

/// Members learn of the death in different calls, and have the same error.
TEST_P(GroupRoot, ThatDiesIsLostToAllMembers) {
  const ScratchFolder folder;
  Job job({ELASTICRUN, "-np", "3", "--min-np", "1", "--max-restarts", "0", GROUP_ROOT_CHECK,
           folder.path().string(), GetParam()},
          folder.path() / "output", {});
  ASSERT_TRUE(job.wait(milliseconds(60000) * kHangFactor)) << "hangs\n" << job.output();
  for (const char* rank : {"1", "2"}) {
    EXPECT_EQ(read_file(folder.path() / rank), "lost") << "rank " << rank << "\n" << job.output();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GroupRoot,
                         ::testing::Values("broadcast", "reduce", "gather", "scatter"),
                         [](const auto& param) { return std::string(param.param); });

class GroupTest : public ::testing::TestWithParam<World> {};

TEST_P(GroupTest, CollectivesAreRightForItsMembers) {
  expect_right(GetParam(), GROUP_CHECK);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, GroupTest,
    ::testing::Values(World{"alone", 1, {}}, World{"two_over_shm", 2, {"ELASTIC_TRANSPORT=shm"}},
                      World{"five_over_shm", 5, {"ELASTIC_TRANSPORT=shm"}},
                      World{"four_over_tcp", 4, {"ELASTIC_TRANSPORT=tcp", "ELASTIC_TCP_STREAMS=3"}},
                      World{"six_over_tcp_linked_as_needed",
                            6,
                            {"ELASTIC_TRANSPORT=tcp", "ELASTIC_ALL_LINKED=0"}}),
    [](const auto& param) { return param.param.name; });

/// Under sanitizers those that differ most.
std::vector<World> worlds() {
  std::vector<World> all{
      {"alone", 1, {}},
      {"three_over_shm", 3, {"ELASTIC_TRANSPORT=shm"}},
      {"encrypted_with_three_streams",
       4,
       {"ELASTIC_TRANSPORT=tcp", "ELASTIC_TCP_STREAMS=3", "ELASTIC_ENCRYPT=1"}},
      {"five_over_tcp_linked_as_needed", 5, {"ELASTIC_TRANSPORT=tcp", "ELASTIC_ALL_LINKED=0"}}};
  if (kSlowness > 1) return all;
  all.push_back({"four_over_tcp", 4, {"ELASTIC_TRANSPORT=tcp", "ELASTIC_BUCKET_BYTES=0"}});
  all.push_back(
      {"small_pieces",
       3,
       {"ELASTIC_TRANSPORT=shm", "ELASTIC_SHM_RING_BYTES=64K", "ELASTIC_SEGMENT_BYTES=4K"}});
  all.push_back({"four_over_shm", 4, {"ELASTIC_TRANSPORT=shm"}});
  all.push_back(
      {"six_over_shm_linked_as_needed", 6, {"ELASTIC_TRANSPORT=shm", "ELASTIC_ALL_LINKED=0"}});
  all.push_back({"three_over_tcp", 3, {"ELASTIC_TRANSPORT=tcp"}});
  all.push_back({"ipv6_with_three_streams",
                 3,
                 {"ELASTIC_TRANSPORT=tcp", "ELASTIC_BIND=::1", "ELASTIC_TCP_STREAMS=3"}});
  all.push_back({"encrypted", 3, {"ELASTIC_TRANSPORT=tcp", "ELASTIC_ENCRYPT=1"}});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Worlds, CollectivesTest, ::testing::ValuesIn(worlds()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace elastic::testing
