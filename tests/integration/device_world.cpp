#include "integration/device_world.hpp"

#include <set>

#include <gtest/gtest.h>

#include "integration/ended.hpp"

namespace elastic::testing {

namespace {

std::string run_ranks(const char* program, int ranks, const std::vector<std::string>& environment,
                      const std::vector<std::string>& arguments = {},
                      const std::vector<std::string>& prefix = {}) {
  const ScratchFolder folder;
  std::vector<std::string> command{ELASTICRUN, "-np", std::to_string(ranks), "--max-restarts", "0"};
  command.insert(command.end(), prefix.begin(), prefix.end());
  command.insert(command.end(), {program, folder.path().string()});
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Ended ended = run(command, environment);
  EXPECT_EQ(ended.status, 0) << ended.output;
  std::set<std::string> hashes;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string hash = read_file(folder.path() / std::to_string(rank));
    EXPECT_NE(hash.find("end"), std::string::npos) << "rank " << rank << "\n" << ended.output;
    hashes.insert(hash);
  }
  EXPECT_EQ(hashes.size(), 1U) << "ranks have other results";
  return ended.output;
}

}  // namespace

void device_world(int ranks, const std::vector<std::string>& environment) {
  for (const char* program : {DEVICE_CHECK, DEVICE_MOVES, DEVICE_MISTAKES}) {
    run_ranks(program, ranks, environment);
  }
}

std::string exact_allreduces(int ranks, const std::vector<std::string>& environment,
                             const std::vector<std::string>& prefix) {
  return run_ranks(DEVICE_CHECK, ranks, environment, {"exact"}, prefix);
}

}  // namespace elastic::testing
