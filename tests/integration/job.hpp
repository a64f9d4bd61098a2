#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/eventually.hpp"

namespace elastic::testing {

/// A folder of its own for a test, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A real process, started from a test, with its output in a file. Killed with all that it started
/// when the object goes.
class Job {
 public:
  /// `environment` is added to the present one.
  Job(const std::vector<std::string>& command, std::filesystem::path output,
      const std::vector<std::string>& environment = {});
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  pid_t pid() const { return pid_; }
  /// Exit status as a shell has it (128 + signal), or nothing when it still runs at the deadline.
  std::optional<int> wait(std::chrono::milliseconds deadline);
  std::string output() const;

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::filesystem::path output_;
};

/// Reads a file whole; empty when there is none.
std::string read_file(const std::filesystem::path& path);

/// Makes a file with a job's secret, as ELASTIC_SECRET_FILE wants it: all digits are `digit`.
void write_secret(const std::filesystem::path& path, char digit);

}  // namespace elastic::testing
