#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace elastic::testing {

/// A stream of allreduces of which one worker is killed.
struct Scenario {
  std::string mode;
  std::string transport;
  bool encrypt = false;
  std::string backend = "native";
  bool compressed = false;  ///< compressed_stream, whose mode is a compression
  bool on_device = false;   ///< the tensors lie on a CUDA device
  std::string driver =
      {};  ///< on_device: the folder with CUDA's driver; empty: that of the machine
  std::vector<std::string> environment = {};  ///< besides; "name=value"
  std::vector<std::string> prefix = {};       ///< of each worker's command
  int ranks = 0;                              ///< 0: a random number of them
  int most_elements = 131072;                 ///< of a tensor
  std::string says = {};                      ///< what must be in the job's output

  friend std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    return out << scenario.mode << " by " << scenario.backend << " over " << scenario.transport
               << (scenario.encrypt ? ", encrypted" : "");
  }
};

/// Kills a random worker at a random moment. Expects that no sum is wrong, mixed or counted twice,
/// that no survivor sees an error, and that nothing hangs.
void one_kill(const Scenario& scenario, std::uint64_t seed);

/// Several, one after another, until one finds something. KILL_TEST_RUNS can ask for more or fewer
/// than `runs`, KILL_TEST_SEED for other seeds. Under sanitizers there are fewer.
void several_kills(const Scenario& scenario, int runs);

}  // namespace elastic::testing
