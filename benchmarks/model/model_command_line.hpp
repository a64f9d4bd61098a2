#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "base/status.hpp"
#include "benchmarks/model/model_options.hpp"

namespace elastic::bench {

/// The subcommand `model`. Must outlive the CLI::App.
class ModelCommandLine {
 public:
  void add(CLI::App& app);
  bool parsed() const { return sub_->parsed(); }
  Result<ModelOptions> read();

 private:
  CLI::App* sub_ = nullptr;
  ModelOptions options_;
  std::string min_bytes_ = "8";
  std::string max_bytes_ = "64M";
  std::string algorithm_ = "chosen";
};

}  // namespace elastic::bench
