#pragma once

#include <CLI/CLI.hpp>

#include "base/status.hpp"
#include "benchmarks/sparse/sparse_options.hpp"

namespace elastic::bench {

/// The subcommand `sparse`. Must outlive the CLI::App.
class SparseCommandLine {
 public:
  void add(CLI::App& app);
  bool parsed() const { return sub_->parsed(); }
  Result<SparseOptions> read() const;

 private:
  CLI::App* sub_ = nullptr;
  SparseOptions options_;
};

}  // namespace elastic::bench
