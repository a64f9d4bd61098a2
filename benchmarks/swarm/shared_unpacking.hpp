#pragma once

#include <string>
#include <string_view>

#include "rendezvous/client/unpacking.hpp"

namespace elastic::bench {

/// Unpacks once what a server sends to all members of a swarm: a whole view, or a change of the
/// latest view. Thousands of workers have as many processors; the members of a swarm share one.
///
/// Belongs to the swarm's thread.
class SharedUnpacking final : public rendezvous::Unpacking {
 public:
  Result<rendezvous::Message> message(std::string_view bytes) override;
  Result<rendezvous::SharedView> view(const rendezvous::ViewChange& change,
                                      const rendezvous::SharedView& before) override;

 private:
  std::string bytes_;  ///< of the latest long message
  rendezvous::Message message_;
  rendezvous::ViewChange change_;  ///< the latest
  rendezvous::SharedView before_;
  rendezvous::SharedView after_;
};

}  // namespace elastic::bench
