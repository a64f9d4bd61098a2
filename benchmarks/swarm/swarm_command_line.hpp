#pragma once

#include <optional>
#include <string>

#include "benchmarks/swarm/swarm_options.hpp"

namespace elastic::bench {

struct SwarmCommandLine {
  SwarmOptions options;
  std::optional<int> exit_code;  ///< set: print `text` and exit
  std::string text;
};

SwarmCommandLine parse_swarm(int argc, const char* const* argv);

}  // namespace elastic::bench
