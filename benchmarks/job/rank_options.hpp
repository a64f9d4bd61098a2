#pragma once

#include <string>
#include <vector>

namespace elastic::bench {

/// Options of a measurement by several ranks: their start, their backends, and the report files.
struct RankOptions {
  int np = 0;                           ///< ranks to start; 0: this process is a rank
  std::vector<std::string> backends;    ///< to measure in turn; empty: that of the environment
  std::vector<std::string> rendezvous;  ///< server of each backend's job; empty: rank 0 starts it
  std::string transport;                ///< empty: that of the environment
  std::string device = "host";          ///< memory of the tensors: host or cuda
  bool encrypt = false;                 ///< under TLS

  std::string json;                    ///< file for the report as JSON; may be empty
  std::string csv;                     ///< file for the report as CSV; may be empty
  std::string plot;                    ///< file for the report as SVG; may be empty
  std::string command;                 ///< the command line, for the report
  std::vector<std::string> arguments;  ///< of the command line, without the program's name
};

}  // namespace elastic::bench
