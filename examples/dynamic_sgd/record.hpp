#pragma once

#include <fstream>
#include <string>

#include "examples/dynamic_sgd/held_out.hpp"
#include "examples/dynamic_sgd/learner.hpp"

namespace dynamic_sgd {

/// A line of JSON for each step. A loss that is not finite is null.
class Record {
 public:
  /// Standard output where `file` is empty. The file is made with the first line: in a job of
  /// several processes only the one that writes has it.
  explicit Record(std::string file) : file_(std::move(file)) {}

  /// Throws std::runtime_error where it cannot be written.
  void add(const StepInfo& info, const Evaluation& held_out);

 private:
  std::string file_;
  std::ofstream lines_;
};

}  // namespace dynamic_sgd
