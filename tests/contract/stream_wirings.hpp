#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "collectives/transport/stream.hpp"

namespace elastic::transport {

/// A way to connect two ends: a transport, and how many streams a link of it has.
struct StreamWiring {
  std::string name;
  std::function<StreamPair()> pair;
  std::size_t streams = 1;
};
inline void PrintTo(const StreamWiring& wiring, std::ostream* out) {
  *out << wiring.name;
}

/// Every transport. Rings are small, so that whatever is worth the name has to wait for room.
std::vector<StreamWiring> stream_wirings();

StreamPair tcp4_pair();

constexpr std::size_t kWiringRingBytes = 64 * 1024;

}  // namespace elastic::transport
