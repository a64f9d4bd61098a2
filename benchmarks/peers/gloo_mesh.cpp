#include "benchmarks/peers/gloo_mesh.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

namespace elastic::bench {

GlooMesh::GlooMesh(const PeerStart& start) : gloo::Context(start.rank, start.ranks) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = start.interface;
  device_ = gloo::transport::tcp::CreateDevice(attributes);
  transportContext_ = device_->createContext(rank, size);
  transportContext_->setTimeout(getTimeout());

  // Each pair listens for one other rank, at its own address. All addresses have the same length.
  std::string mine;
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    const std::vector<char> address = transportContext_->createPair(other)->address().bytes();
    mine.append(address.data(), address.size());
  }
  const std::vector<std::string> all = start.exchange(mine);
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    const std::string& theirs = all[static_cast<std::size_t>(other)];
    const std::size_t length = theirs.size() / static_cast<std::size_t>(size - 1);
    const auto place = static_cast<std::size_t>(rank < other ? rank : rank - 1) * length;
    const auto* const begin = theirs.data() + place;
    getPair(other)->connect(std::vector<char>(begin, begin + length));
  }
}

}  // namespace elastic::bench
