// Workers with uneven data, as real processes under elasticrun.
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

struct Scene {
  std::string name;
  int ranks;
  std::vector<std::string> environment = {};
  int killed = -1;
  int restarts = 0;
  std::string scene = {};

  friend std::ostream& operator<<(std::ostream& out, const Scene& scene) {
    return out << scene.name << " of " << scene.ranks;
  }
};

class JoinTest : public ::testing::TestWithParam<Scene> {};

TEST_P(JoinTest, EndsWhereAllHaveJoined) {
  const Scene& scene = GetParam();
  const ScratchFolder folder;
  std::vector<std::string> environment = scene.environment;
  environment.push_back("XDG_RUNTIME_DIR=" + folder.path().string());
  Job job({ELASTICRUN, "-np", std::to_string(scene.ranks), "--max-restarts",
           std::to_string(scene.restarts), JOIN_CHECK, folder.path().string(), scene.scene},
          folder.path() / "output", environment);
  const auto status = job.wait(milliseconds(60000) * kHangFactor);
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(*status, 0) << job.output();
  for (int rank = 0; rank < scene.ranks; ++rank) {
    if (rank == scene.killed) continue;
    EXPECT_EQ(read_file(folder.path() / std::to_string(rank)), "end\n") << "rank " << rank << "\n"
                                                                        << job.output();
  }
}

const std::vector<std::string> kTree = {"ELASTIC_TRANSPORT=tcp", "ELASTIC_ALL_LINKED=0"};

INSTANTIATE_TEST_SUITE_P(
    Scenes, JoinTest,
    ::testing::Values(
        Scene{"steps_alone", 1, {}, -1, 0, "steps"}, Scene{"steps_of_two", 2, {}, -1, 0, "steps"},
        Scene{"steps_of_four", 4, {}, -1, 0, "steps"},
        Scene{"steps_of_three_over_tcp",
              3,
              {"ELASTIC_TRANSPORT=tcp", "ELASTIC_BUCKET_BYTES=1"},
              -1,
              0,
              "steps"},
        Scene{"steps_of_seven_along_a_tree", 7, kTree, -1, 0, "steps"},
        Scene{"errors_of_two", 2, {}, -1, 0, "errors"},
        Scene{"errors_of_three", 3, {}, -1, 0, "errors"},
        Scene{"errors_of_six_along_a_tree", 6, kTree, -1, 0, "errors"},
        Scene{"joined_dies", 4, {}, 1, 0, "joined-dies"},
        Scene{"joined_dies_in_a_tree", 7, kTree, 1, 0, "joined-dies"},
        Scene{"unjoined_dies", 2, {}, 1, 0, "unjoined-dies"},
        Scene{"unjoined_dies_of_four", 4, {}, 1, 0, "unjoined-dies"},
        Scene{"a_worker_comes", 3, {}, 1, 1, "comes"},
        Scene{"a_worker_comes_during_a_call_of_a_group", 3, {}, 2, 1, "comes-meanwhile"}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace elastic::testing
