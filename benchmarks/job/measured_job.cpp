#include "benchmarks/job/measured_job.hpp"

#include <chrono>
#include <fstream>

#include "benchmarks/command_line.hpp"
#include "benchmarks/job/child_run.hpp"
#include "benchmarks/job/program_files.hpp"

namespace elastic::bench {

namespace {

constexpr std::chrono::milliseconds kJobDeadline{600000};

}  // namespace

Result<nlohmann::ordered_json> run_measured_job(const MeasuredJob& job,
                                                const RankOptions& options) {
  auto files = program_files();
  if (!files.ok()) return files.status();
  ScratchFolder folder;
  if (Status status = ScratchFolder::make(folder); !status.ok()) return status;
  const std::string report = (folder.path() / "report").string();
  const std::string ranks = std::to_string(job.ranks);
  std::vector<std::string> command{
      files.value().elasticrun.string(), "-np", ranks, "--min-np", ranks, "--max-restarts", "0"};
  if (job.encrypt) command.emplace_back("--encrypt");
  command.push_back(files.value().self.string());
  for (const auto& arguments : {rank_arguments(options), job.arguments}) {
    command.insert(command.end(), arguments.begin(), arguments.end());
  }
  command.insert(command.end(), {"--json", report});
  Status ended = run_child(command, folder.path() / "output", kJobDeadline);
  if (!ended.ok()) return ended;
  std::ifstream file(report);
  return nlohmann::ordered_json::parse(file).at("results");
}

}  // namespace elastic::bench
