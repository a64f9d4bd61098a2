// elastic-swarm: many workers against one server, through all that may happen to a job.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "integration/job.hpp"

namespace elastic::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kDeadline{100};

std::string run_swarm(const ScratchFolder& folder, const std::vector<std::string>& arguments,
                      int expected_code) {
  std::vector<std::string> command{ELASTIC_SWARM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Job job(command, folder.path() / "output");
  const auto code = job.wait(kDeadline);
  EXPECT_EQ(code.value_or(-1), expected_code) << job.output();
  return job.output();
}

TEST(Swarm, GoesThroughAllPhasesWithoutAnEviction) {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "swarm.json").string();
  const std::string workers = std::to_string(SWARM_WORKERS);
  const std::string output = run_swarm(
      folder, {"--workers", workers, "--deaths", "20", "--idle-s", "1", "--json", file}, 0);
  EXPECT_THAT(output, HasSubstr(workers + " workers"));
  const json report = json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << output;
  EXPECT_THAT(report["command"].get<std::string>(),
              HasSubstr("elastic-swarm --workers " + workers));
  const json& row = report["results"][0];
  for (const char* key :
       {"form_s", "death_s", "deaths_s", "server_return_s", "join_s", "idle_cpu_percent"}) {
    EXPECT_GT(row.value(key, 0.0), 0.0) << key << " in " << row.dump();
  }
  EXPECT_EQ(row.value("workers", 0), SWARM_WORKERS);
  EXPECT_EQ(row.value("deaths", 0), 20);
  EXPECT_EQ(row.value("evicted", -1), 0);
  EXPECT_LE(row.value("deaths_rounds", 100), 3);
  EXPECT_LE(row.value("bytes_per_member_death", 1e9), 2048);
}

TEST(Swarm, RefusesMoreWorkersThanDescriptors) {
  const ScratchFolder folder;
  EXPECT_THAT(run_swarm(folder, {"--workers", "1048576"}, 2),
              HasSubstr("--workers 1048576 needs 1048608 descriptors, and this process may have"));
}

}  // namespace
}  // namespace elastic::testing
