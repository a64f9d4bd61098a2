#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace elastic::testing {

/// The report of a fault_worker on one step: see StepReport in programs/step_report.hpp.
struct Step {
  std::uint64_t index = 0;
  std::string sums;
  std::size_t contributors = 0;
  std::uint64_t generation = 0;
  std::int64_t microseconds = 0;
  std::string state;

  bool failed() const { return sums.starts_with("error:"); }
};

/// The output of one worker, read as it grows.
class WorkerLog {
 public:
  explicit WorkerLog(std::filesystem::path file) : file_(std::move(file)) {}

  /// Takes in what has been written since the last time.
  void refresh();

  const std::vector<Step>& steps() const { return steps_; }
  /// Lines other than steps, the library's log among them.
  const std::vector<std::string>& lines() const { return lines_; }
  /// The first line that starts so, without its start; nothing found: empty.
  std::string told(const std::string& start) const;
  std::size_t count(const std::string& start) const;
  std::string text() const;

 private:
  void take(const std::string& line);

  std::filesystem::path file_;
  std::streamoff read_ = 0;
  std::string incomplete_;
  std::vector<Step> steps_;
  std::vector<std::string> lines_;
};

}  // namespace elastic::testing
