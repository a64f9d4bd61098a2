#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "rendezvous/protocol/messages.hpp"

namespace elastic::simulation {

/// Which operations can complete: one can, in a generation, once all members of its view have
/// entered it in that generation. Whether they live on does not matter, what they sent is sent.
class Fabric {
 public:
  using Operation =
      std::tuple<std::uint64_t, std::size_t, std::uint64_t>;  ///< generation, lane, position

  /// True for the last of the view's members.
  bool enter(const rendezvous::View& view, std::size_t lane, std::uint64_t position,
             const std::string& worker) {
    auto& entered = entered_[{view.generation, lane, position}];
    entered.insert(worker);
    return entered.size() == view.members.size();
  }

 private:
  std::map<Operation, std::set<std::string>> entered_;
};

}  // namespace elastic::simulation
