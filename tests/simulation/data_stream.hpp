#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "chance.hpp"
#include "collectives/transport/stream.hpp"
#include "network.hpp"

namespace elastic::simulation {

/// A connection between two workers as the product's links use it: bytes over the simulated
/// network, with a bounded number of bytes in flight and a descriptor that can be polled. As on a
/// socket, a write may take a part of its bytes.
struct DataStreams {
  transport::StreamPtr first;
  transport::StreamPtr second;
};
DataStreams connect_data(Network& network, Chance& chance, Node first, Node second);

}  // namespace elastic::simulation
