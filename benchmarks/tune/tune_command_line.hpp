#pragma once

#include <CLI/CLI.hpp>

#include "base/status.hpp"
#include "benchmarks/tune/tune_options.hpp"

namespace elastic::bench {

/// The subcommand `tune`. Must outlive the CLI::App.
class TuneCommandLine {
 public:
  void add(CLI::App& app);
  bool parsed() const { return sub_->parsed(); }
  Result<TuneOptions> read() const;

 private:
  CLI::App* sub_ = nullptr;
  TuneOptions options_;
};

}  // namespace elastic::bench
