#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend_contract.hpp"
#include "collectives/backend/native/native_backend.hpp"
#include "collectives/transport/mesh.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::collectives {

/// A kind of link between two ranks.
struct Wiring {
  std::string name;
  std::function<transport::StreamPair()> pair;
  int streams = 1;  ///< per link
};

std::vector<Wiring> all_wirings();

/// The meshes of `size` ranks, all linked with each other.
std::vector<std::shared_ptr<transport::Mesh>> wire(int size, const Wiring& wiring);

World native_world(int size, const Wiring& wiring, const NativeOptions& options);

}  // namespace elastic::collectives
