#include "integration/device_world.hpp"

#include <set>

#include <gtest/gtest.h>

#include "integration/ended.hpp"

namespace elastic::testing {

namespace {

void run_ranks(const char* program, int ranks, const std::vector<std::string>& environment) {
  const ScratchFolder folder;
  const Ended ended = run({ELASTICRUN, "-np", std::to_string(ranks), "--max-restarts", "0", program,
                           folder.path().string()},
                          environment);
  ASSERT_EQ(ended.status, 0) << ended.output;
  std::set<std::string> hashes;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string hash = read_file(folder.path() / std::to_string(rank));
    EXPECT_NE(hash.find("end"), std::string::npos) << "rank " << rank << "\n" << ended.output;
    hashes.insert(hash);
  }
  EXPECT_EQ(hashes.size(), 1U) << "ranks have other results";
}

}  // namespace

void device_world(int ranks, const std::vector<std::string>& environment) {
  for (const char* program : {DEVICE_CHECK, DEVICE_MOVES, DEVICE_MISTAKES}) {
    run_ranks(program, ranks, environment);
  }
}

}  // namespace elastic::testing
