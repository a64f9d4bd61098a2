#include "benchmarks/job/rank_start.hpp"

#include "benchmarks/job/child_run.hpp"
#include "benchmarks/job/program_files.hpp"

namespace elastic::bench {

Status start_ranks(int np, const std::vector<std::string>& arguments) {
  auto files = program_files();
  if (!files.ok()) return files.status();
  const std::string count = std::to_string(np);
  std::vector<std::string> command{files.value().elasticrun.string(),
                                   "-np",
                                   count,
                                   "--min-np",
                                   count,
                                   "--max-restarts",
                                   "0",
                                   "--no-prefix",
                                   files.value().self.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return become(command);
}

}  // namespace elastic::bench
