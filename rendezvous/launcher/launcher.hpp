#pragma once

#include <map>
#include <memory>
#include <string>

#include "rendezvous/launcher/launch_options.hpp"

namespace elastic::launcher {

/// Runs one job: server, workers, their output, signals. A thin shell around Supervision.
///
/// Owned by the main thread, in which it also starts the workers: they die with it.
class Launcher {
 public:
  using Environment = std::map<std::string, std::string>;

  /// `program` is the path of the command's program. The environment is what workers inherit.
  Launcher(LaunchOptions options, std::string program, Environment environment);
  ~Launcher();

  /// Returns the exit code, after the last worker has ended.
  int run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elastic::launcher
