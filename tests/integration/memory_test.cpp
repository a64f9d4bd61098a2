// The memory that a worker needs beyond the caller's.
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

class MemoryTest : public ::testing::TestWithParam<std::string> {};

TEST_P(MemoryTest, IsOneScratchOfTheLargestTensorAndLittleMore) {
  constexpr std::size_t kTensor = 64 * kMib;
  const ScratchFolder folder;
  Job job({ELASTICRUN, "-np", "3", "--max-restarts", "0", MEMORY_USE, std::to_string(kTensor)},
          folder.path() / "output",
          {"XDG_RUNTIME_DIR=" + folder.path().string(), "ELASTIC_TRANSPORT=" + GetParam()});
  const auto status = job.wait(std::chrono::milliseconds(100000));
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_EQ(*status, 0) << job.output();
  std::istringstream output(job.output());
  int workers = 0;
  for (std::string line; std::getline(output, line);) {
    const std::size_t mark = line.find("] ");
    if (line.front() != '[' || mark == std::string::npos) continue;
    const std::size_t used = std::stoull(line.substr(mark + 2));
    EXPECT_LE(used / kMib, kTensor / kMib + 64) << line;
    EXPECT_GT(used, kTensor) << "it does not count what is meant: " << line;
    ++workers;
  }
  EXPECT_EQ(workers, 3) << job.output();
}

INSTANTIATE_TEST_SUITE_P(Over, MemoryTest, ::testing::Values("shm", "tcp"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace elastic::testing
