#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "examples/digits/trainer.hpp"

namespace digits {

/// One line of JSON about a worker's training, for people and for checks: among others how often
/// each sample was used, and a hash of the weights, which must be the same on all workers.
std::string report_line(const Trainer& trainer, elastic::RunOutcome outcome, int rank);

/// Writes `line` to <folder>/report-<pid>.json, or to standard output where `folder` is empty.
/// Throws std::runtime_error where that fails.
void write_report(const std::string& folder, const std::string& line);

/// Writes them to `file`, as f32 one after another, unless its name is empty. Throws
/// std::runtime_error where that fails.
void write_weights(const std::string& file, const Parameters& weights);

/// Writes a line of JSON for each step to <folder>/trace-<pid>.jsonl, each at once, so that what a
/// killed worker did can be read.
class Trace {
 public:
  /// Throws std::runtime_error where the file cannot be made.
  explicit Trace(const std::string& folder);
  /// `weights` as the step has left them.
  void add(const StepInfo& info, const Parameters& weights);

 private:
  std::ofstream file_;
};

}  // namespace digits
