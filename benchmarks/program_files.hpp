#pragma once

#include <filesystem>

#include "base/status.hpp"

namespace elastic::bench {

/// This program, and the launcher beside it.
struct ProgramFiles {
  std::filesystem::path self;
  std::filesystem::path elasticrun;
};

/// kUnavailable when there is no elasticrun beside this program.
Result<ProgramFiles> program_files();

/// A folder for one run's files, removed at the end.
class ScratchFolder {
 public:
  /// kUnavailable when it cannot be made.
  static Status make(ScratchFolder& folder);

  ScratchFolder() = default;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace elastic::bench
