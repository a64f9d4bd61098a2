#pragma once

#include <string>
#include <vector>

namespace elastic::bench {

/// Where the ranks of a measurement come from, what they run on, and what is written of it.
struct RankOptions {
  int np = 0;                           ///< ranks to start; 0: this process is one
  std::vector<std::string> backends;    ///< to measure in turn; empty: as the environment says
  std::vector<std::string> rendezvous;  ///< server of each backend's job; empty: rank 0 starts it
  std::string transport;                ///< empty: left to the environment
  std::string device = "host";          ///< whose memory the tensors lie in: host or cuda
  bool encrypt = false;                 ///< under TLS

  std::string json;                    ///< files for the report, or empty
  std::string csv;                     ///< likewise
  std::string plot;                    ///< likewise, SVG
  std::string command;                 ///< what was typed, for the report
  std::vector<std::string> arguments;  ///< of that, without the program's name
};

}  // namespace elastic::bench
