#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "base/status.hpp"
#include "benchmarks/collective/collective_options.hpp"

namespace elastic::bench {

/// The subcommands of the collectives, which share their options. Must outlive the CLI::App.
class CollectiveCommandLine {
 public:
  void add(CLI::App& app);
  /// After parsing: whether the command line has one of these subcommands.
  bool parsed() const { return !options_.operation.empty(); }
  Result<CollectiveOptions> read();

 private:
  void add_operation(CLI::App& app, const std::string& name);

  CollectiveOptions options_;
  std::string min_bytes_ = "8";
  std::string max_bytes_ = "64M";
  std::string increment_;
};

}  // namespace elastic::bench
