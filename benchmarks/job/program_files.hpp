#pragma once

#include <filesystem>

#include "base/status.hpp"

namespace elastic::bench {

/// The paths of this program and of the launcher in the same folder.
struct ProgramFiles {
  std::filesystem::path self;
  std::filesystem::path elasticrun;
};

/// kUnavailable if this program's folder has no elasticrun.
Result<ProgramFiles> program_files();

/// A folder for the files of one run. The destructor removes it.
class ScratchFolder {
 public:
  /// kUnavailable if the folder cannot be made.
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
