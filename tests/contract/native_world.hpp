#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend_contract.hpp"
#include "collectives/backend/native/native_backend.hpp"
#include "collectives/transport/mesh.hpp"
#include "collectives/transport/shm/arena.hpp"
#include "collectives/transport/stream.hpp"

namespace elastic::collectives {

using ArenaPtr = std::shared_ptr<transport::Arena>;

/// A kind of link between two ranks.
struct Wiring {
  std::string name;
  /// The ranks' arenas, which not every kind makes known to the other.
  std::function<transport::StreamPair(const ArenaPtr& first, const ArenaPtr& second)> pair;
  int streams = 1;  ///< per link
  bool arenas = false;
  std::size_t threads = 1;  ///< of each rank, even for a single byte
};

std::vector<Wiring> all_wirings();
/// Over shared memory between ranks that have arenas.
Wiring arena_wiring();

std::shared_ptr<std::byte> allocate(const ArenaPtr& arena, std::size_t bytes);

/// An arena for each of `size` ranks; null where there are none.
std::vector<ArenaPtr> arenas_of(int size, const Wiring& wiring);

/// The meshes of the ranks that have these arenas, all linked with each other.
std::vector<std::shared_ptr<transport::Mesh>> wire(const std::vector<ArenaPtr>& arenas,
                                                   const Wiring& wiring);
inline std::vector<std::shared_ptr<transport::Mesh>> wire(int size, const Wiring& wiring) {
  return wire(arenas_of(size, wiring), wiring);
}

World native_world(int size, const Wiring& wiring, const NativeOptions& options);
/// Shared memory between ranks that options.hosts has on one host, TCP between the others, with so
/// many streams for each link.
World native_world_of_hosts(const NativeOptions& options, int streams = 1);

}  // namespace elastic::collectives
