#include "integration/device_world.hpp"

#include <chrono>
#include <set>

#include <gtest/gtest.h>

#include "integration/ended.hpp"
#include "integration/trainer_job.hpp"

namespace elastic::testing {

namespace {

/// Stands in a command for the folder of the ranks' output.
constexpr const char* kFolder = "FOLDER";

std::string run_ranks(const std::vector<std::string>& program, int ranks,
                      const std::vector<std::string>& environment) {
  const ScratchFolder folder;
  std::vector<std::string> command{ELASTICRUN, "-np", std::to_string(ranks), "--max-restarts", "0"};
  for (const std::string& word : program) {
    command.push_back(word == kFolder ? folder.path().string() : word);
  }
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

std::string device_world(int ranks, const std::vector<std::string>& environment, bool exact,
                         const std::vector<std::string>& prefix) {
  std::string said;
  for (const std::string program : {DEVICE_CHECK, DEVICE_MOVES, DEVICE_MISTAKES}) {
    std::vector<std::string> command = prefix;
    command.insert(command.end(), {program, kFolder});
    if (exact && program != DEVICE_MISTAKES) command.emplace_back("exact");
    said += run_ranks(command, ranks, environment);
  }
  return said;
}

std::string device_training(const std::vector<std::string>& environment,
                            const std::vector<std::string>& prefix, int signal) {
  std::vector<std::string> options{"-np", "3", "--max-restarts", "1"};
  options.insert(options.end(), prefix.begin(), prefix.end());
  TrainerJob job(options, "device", environment);
  EXPECT_TRUE(job.wait_until_trained(3)) << job.output();
  ::kill(job.pid(1), signal);
  EXPECT_TRUE(job.wait_until_trained(4)) << job.output();
  EXPECT_EQ(job.finish(), 0) << job.output();
  std::set<std::string> results;
  for (const auto& [pid, told] : job.told("result")) results.insert(told);
  EXPECT_EQ(results.size(), 1U) << job.output();
  return job.output();
}

void device_shrinking(const std::vector<std::string>& environment,
                      const std::vector<std::string>& prefix) {
  constexpr std::chrono::seconds kLong{60};
  std::vector<std::string> options{"-np", "3", "--min-np", "2", "--max-restarts", "0"};
  options.insert(options.end(), prefix.begin(), prefix.end());
  TrainerJob job(options, "device", environment);
  ASSERT_TRUE(job.wait_until_trained(3)) << job.output();
  const pid_t removed = job.pid(1);
  ASSERT_TRUE(job.control({"remove", "1"})) << job.output();
  for (const char* const said :
       {"nccl, generation 2: the communicator is shrunk from that of generation 1",
        "nccl, generation 2: allreduces of tensors on devices go by NCCL from now on"}) {
    EXPECT_TRUE(eventually(kLong, [&] { return job.output().find(said) != std::string::npos; }))
        << said << "\n"
        << job.output();
  }
  EXPECT_EQ(job.finish(), 0) << job.output();
  std::set<std::string> results;
  for (const auto& [pid, told] : job.told("result")) {
    if (pid != removed) results.insert(told);
  }
  EXPECT_EQ(results.size(), 1U) << job.output();
}

}  // namespace elastic::testing
