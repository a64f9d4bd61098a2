#pragma once

#include <CLI/CLI.hpp>

#include "base/status.hpp"
#include "benchmarks/steps/fusion_options.hpp"

namespace elastic::bench {

/// The subcommand `fusion`. Must outlive the CLI::App.
class FusionCommandLine {
 public:
  void add(CLI::App& app);
  bool parsed() const { return sub_->parsed(); }
  Result<FusionOptions> read() const;

 private:
  CLI::App* sub_ = nullptr;
  FusionOptions options_;
};

}  // namespace elastic::bench
