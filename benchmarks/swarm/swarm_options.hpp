#pragma once

#include <string>

#include "base/clock.hpp"

namespace elastic::bench {

/// The options of `elastic-swarm`.
struct SwarmOptions {
  int workers = 1000;
  int deaths = 100;                  ///< lost at once, and as many joiners come in the end
  int idle_s = 5;                    ///< for which the server's processor time is counted
  std::string server;                ///< path of elastic-rendezvous; empty: beside this program
  std::string json;                  ///< report file; empty: none
  Milliseconds phase_limit{120000};  ///< a phase that takes longer has failed
};

}  // namespace elastic::bench
