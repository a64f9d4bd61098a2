#pragma once

#include <optional>
#include <string>

#include "benchmarks/report/byte_size.hpp"
#include "collectives/plan/choose.hpp"

namespace elastic::bench {

/// Options of `elastic-bench model`.
struct ModelOptions {
  int hosts = 2;
  int ranks_per_host = 1;
  std::string network;  ///< a name, or the path of a file
  SizeRange sizes;
  bool cheapest = false;  ///< the algorithm with the least price, not the one that elastic chooses
  std::optional<plan::AllreduceAlgorithm> algorithm;  ///< instead of either
  int flows = 0;                   ///< of a link between hosts; 0: as many as elastic uses
  int threads = 0;                 ///< of a rank; 0: as many as the network's file says
  bool ignores_processor = false;  ///< the network alone
  std::string json;
  std::string command;
};

}  // namespace elastic::bench
