#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fault/network_fixture.hpp"
#include "fault/wire.hpp"

namespace elastic::testing {

/// A job one of whose hosts has a cable that flips bits.
class WireTest : public NetworkTest {
 protected:
  void splice(std::size_t slot) {
    const std::string& address = job_->address();
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    wire_ = std::make_unique<Wire>(*hosts_, host_of(slot), static_cast<std::uint16_t>(port));
  }
  /// Whether a worker's log has a line that names damage: found by a checksum, or by TLS.
  bool damage_is_named() {
    const std::vector<std::string> texts{"damaged on the way", "checksum", "damaged or forged"};
    for (FaultWorker* worker : job_->others({})) {
      for (const std::string& line : worker->log().lines()) {
        for (const std::string& text : texts) {
          if (line.find(text) != std::string::npos) return true;
        }
      }
    }
    return false;
  }

  std::unique_ptr<Wire> wire_;
};

}  // namespace elastic::testing
