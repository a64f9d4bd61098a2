#include "integration/one_kill.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <signal.h>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "integration/job.hpp"
#include "tests/slowness.hpp"

namespace elastic::testing {
namespace {

using std::chrono::milliseconds;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

/// Compares the lines that the workers have logged of the calls of their groups, "call group sum":
/// the same sum wherever the same call is. The last sum of each group that `dead` (-1: none) had
/// may be its alone: the others perform a call again of which only a dead worker had the result.
void expect_groups_agree(const std::filesystem::path& folder, int ranks, int dead) {
  std::map<std::string, std::string> sums;
  for (int slot = 0; slot < ranks; ++slot) {
    std::vector<std::string> log = lines(read_file(folder / ("groups." + std::to_string(slot))));
    std::set<std::string> had;
    if (slot == dead) {
      const auto is_last_of_its_group = [&](const std::string& line) {
        const std::size_t call = line.find(' ');
        return had.insert(line.substr(call + 1, line.rfind(' ') - call)).second;
      };
      std::reverse(log.begin(), log.end());
      std::erase_if(log, is_last_of_its_group);
    }
    for (const std::string& line : log) {
      const std::size_t at = line.rfind(' ');
      const auto known = sums.emplace(line.substr(0, at), line.substr(at + 1)).first;
      EXPECT_EQ(line.substr(at + 1), known->second)
          << "slot " << slot << " had another sum in call and group " << known->first;
    }
  }
}

}  // namespace

void one_kill(const Scenario& scenario, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int any = 2 + static_cast<int>(random() % 5);
  const int ranks = scenario.ranks > 0 ? scenario.ranks : any;
  const int victim = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
  const auto delay = std::chrono::microseconds(random() % 120000);
  const int calls = scenario.mode == "named" ? 120 : scenario.mode == "groups" ? 60 : 400;

  std::vector<std::string> environment{
      "ELASTIC_BACKEND=" + scenario.backend, "ELASTIC_TRANSPORT=" + scenario.transport,
      std::string("ELASTIC_ENCRYPT=") + (scenario.encrypt ? "1" : "0")};
  environment.insert(environment.end(), scenario.environment.begin(), scenario.environment.end());
  if (!scenario.driver.empty()) environment.push_back("LD_LIBRARY_PATH=" + scenario.driver);

  const ScratchFolder folder;
  std::vector<std::string> command{ELASTICRUN,       "-np", std::to_string(ranks), "--min-np", "1",
                                   "--max-restarts", "0"};
  command.insert(command.end(), scenario.prefix.begin(), scenario.prefix.end());
  for (const std::string& each :
       {std::string(scenario.compressed ? COMPRESSED_STREAM : DIGIT_STREAM),
        (scenario.on_device ? "device_" : "") + scenario.mode, std::to_string(calls),
        std::to_string(scenario.most_elements), std::to_string(seed), folder.path().string()}) {
    command.push_back(each);
  }
  Job job(command, folder.path() / "output", environment);

  // To open a device takes longer than the moments that are swept: there, a call has ended first.
  const auto victim_log = folder.path() / std::to_string(victim);
  const auto begun = [&] {
    return scenario.on_device ? !lines(read_file(victim_log)).empty()
                              : std::filesystem::exists(victim_log);
  };
  ASSERT_TRUE(eventually(milliseconds(60000) * kHangFactor, [&] {
    return begun() || job.wait(milliseconds(0));
  })) << job.output();
  // The moment of death is what is swept; there is no event to wait for.
  std::this_thread::sleep_for(delay);
  const pid_t pid = std::atoi(read_file(folder.path() / ("pid." + std::to_string(victim))).c_str());
  ASSERT_GT(pid, 1) << job.output();
  ::kill(pid, SIGKILL);

  const auto status = job.wait(milliseconds(60000) * kSlowness);
  ASSERT_TRUE(status.has_value()) << "hangs\n" << job.output();
  EXPECT_NE(job.output().find(scenario.says), std::string::npos) << job.output();
  const auto ended = [&](int slot) {
    const std::vector<std::string> log = lines(read_file(folder.path() / std::to_string(slot)));
    return !log.empty() && log.back() == "end";
  };
  // Killed after its last call, the victim is a failure in the launcher's eyes: rightly. Killed
  // shortly before, the others may be done by the time that the launcher asks whether they are.
  const bool late = job.output().find("after the job was done") != std::string::npos;
  if (!ended(victim) && !late) {
    EXPECT_EQ(*status, 0) << job.output();
  }

  std::vector<std::string> agreed;
  for (int slot = 0; slot < ranks; ++slot) {
    const std::vector<std::string> log = lines(read_file(folder.path() / std::to_string(slot)));
    if (slot == victim && !ended(slot)) continue;
    ASSERT_FALSE(log.empty()) << job.output();
    EXPECT_EQ(log.back(), "end") << "slot " << slot << "\n" << job.output();
    if (agreed.empty()) agreed = log;
    EXPECT_EQ(log, agreed) << "slot " << slot << " had other sums";
  }
  expect_groups_agree(folder.path(), ranks, ended(victim) ? -1 : victim);
}

void several_kills(const Scenario& scenario, int runs) {
  runs = std::max(runs / kSlowness, 1);
  const char* asked_runs = std::getenv("KILL_TEST_RUNS");
  const char* asked_seed = std::getenv("KILL_TEST_SEED");
  if (asked_runs != nullptr) runs = std::atoi(asked_runs);
  const std::uint64_t first = asked_seed == nullptr ? 1000 : std::strtoull(asked_seed, nullptr, 10);
  for (int run = 0; run < runs; ++run) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(run);
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    one_kill(scenario, seed);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace elastic::testing
