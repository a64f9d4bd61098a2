#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chance.hpp"
#include "network.hpp"
#include "scenario.hpp"
#include "tally.hpp"
#include "trace.hpp"
#include "virtual_time.hpp"

namespace elastic::simulation {

class ModelServer;
class ModelWorker;
class Oracle;
class Threads;

/// References to the components of a run, for its parts. The components outlive these.
struct SimContext {
  const Scenario& scenario;
  VirtualTime& time;
  Chance& chance;
  Network& network;
  Trace& trace;
  Oracle& oracle;
  Tally& tally;
  Threads& threads;
  ModelServer& server;
  const std::vector<std::unique_ptr<ModelWorker>>& workers;  ///< by node
  /// The worker was evicted though it lives: it comes again as a new one.
  std::function<void(Node)> rejoin;
};

/// Whether `one` is among the incarnations that a decision names.
inline bool names(const std::vector<std::string>& incarnations, const std::string& one) {
  return std::find(incarnations.begin(), incarnations.end(), one) != incarnations.end();
}

}  // namespace elastic::simulation
