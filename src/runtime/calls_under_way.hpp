#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/lane.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::runtime {

/// What this worker is in, for its heartbeats: from that the server sees which ranks wait and for
/// which. Asked for by the control thread, so that it costs the calls themselves nothing.
class CallsUnderWay {
 public:
  /// `first_name` tells the first of the named tensors under way, "" for none. May be called until
  /// it is replaced; empty: there are no named tensors.
  void ask_for_names(std::function<std::string()> first_name);

  /// Nothing while this worker waits for the state of others: that is no stall.
  std::optional<std::vector<rendezvous::CallUnderWay>> tell(const coordinator::Lane& unnamed,
                                                            const coordinator::Lane& named) const;

 private:
  mutable std::mutex mutex_;  // also held while `first_name_` runs
  std::function<std::string()> first_name_;
};

}  // namespace elastic::runtime
