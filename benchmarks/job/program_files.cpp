#include "benchmarks/job/program_files.hpp"

#include <cerrno>
#include <cstring>
#include <stdlib.h>
#include <string>
#include <system_error>

namespace elastic::bench {

Result<ProgramFiles> program_files() {
  std::error_code error;
  ProgramFiles files{.self = std::filesystem::read_symlink("/proc/self/exe", error),
                     .elasticrun = {}};
  if (error) return Status(Code::kUnavailable, "/proc/self/exe: " + error.message());
  files.elasticrun = files.self.parent_path() / "elasticrun";
  if (!std::filesystem::exists(files.elasticrun, error)) {
    return Status(Code::kUnavailable,
                  files.elasticrun.string() +
                      " is missing: it is looked for beside elastic-bench. Build it, or start the "
                      "ranks with another launcher and without --np");
  }
  return files;
}

Status ScratchFolder::make(ScratchFolder& folder) {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  std::string pattern = (parent / "elastic-bench-XXXXXX").string();
  if (error || ::mkdtemp(pattern.data()) == nullptr) {
    return Status(Code::kUnavailable, pattern + ": " + std::strerror(errno));
  }
  folder.path_ = pattern;
  return {};
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace elastic::bench
