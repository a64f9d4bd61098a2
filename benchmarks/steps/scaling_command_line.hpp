#pragma once

#include <CLI/CLI.hpp>

#include "base/status.hpp"
#include "benchmarks/steps/scaling_options.hpp"

namespace elastic::bench {

/// The subcommand `scaling`. Must outlive the CLI::App.
class ScalingCommandLine {
 public:
  void add(CLI::App& app);
  bool parsed() const { return sub_->parsed(); }
  Result<ScalingOptions> read() const;

 private:
  CLI::App* sub_ = nullptr;
  ScalingOptions options_;
};

}  // namespace elastic::bench
