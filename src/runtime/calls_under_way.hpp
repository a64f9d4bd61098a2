#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "coordinator/lane.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::runtime {

/// The calls that this worker is in, for its heartbeats. The server finds stalls with them. The
/// control thread asks for them, so the calls themselves cost nothing.
class CallsUnderWay {
 public:
  /// Sets the function that returns the first named tensor under way ("" for none). It may be
  /// called until it is replaced. Empty: there are no named tensors.
  void set_first_name(std::function<std::string()> first_name);

  /// The present call of each lane. Nothing while this worker synchronises state, which is no
  /// stall.
  std::optional<std::vector<rendezvous::CallUnderWay>> present_calls(
      const coordinator::Lane& unnamed, const coordinator::Lane& named) const;

 private:
  mutable Mutex mutex_;  // also held while `first_name_` runs
  std::function<std::string()> first_name_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::runtime
