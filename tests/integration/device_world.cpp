#include "integration/device_world.hpp"

#include <set>

#include <gtest/gtest.h>

#include "integration/ended.hpp"

namespace elastic::testing {

std::string device_world(int ranks, const std::vector<std::string>& environment, bool exact,
                         const std::vector<std::string>& prefix) {
  const ScratchFolder folder;
  std::vector<std::string> command{ELASTICRUN, "-np", std::to_string(ranks), "--max-restarts", "0"};
  command.insert(command.end(), prefix.begin(), prefix.end());
  command.insert(command.end(), {DEVICE_CHECK, folder.path().string()});
  if (exact) command.emplace_back("exact");
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

}  // namespace elastic::testing
