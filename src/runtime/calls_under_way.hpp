#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "coordinator/coordinator.hpp"
#include "coordinator/lane.hpp"
#include "coordinator/lane_view.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::runtime {

/// The calls that this worker is in, for its heartbeats. The server finds stalls with them. The
/// control thread asks for them, so the calls themselves cost nothing.
class CallsUnderWay {
 public:
  using NamedCall = coordinator::Coordinator::UnderWay;
  using FirstCall = std::function<std::optional<NamedCall>()>;

  /// Sets the function that returns the first named call under way. It may be called until it is
  /// replaced. Empty: there are no named calls.
  void set_first_call(FirstCall first_call);

  /// The present call of each lane; of a group's call the ranks among `members`, if there are any.
  /// Nothing while this worker synchronises state, which is no stall.
  std::optional<std::vector<rendezvous::CallUnderWay>> present_calls(
      const coordinator::Lane& unnamed, const coordinator::Lane& named,
      const coordinator::Members* members) const;

 private:
  mutable Mutex mutex_;  // also held while `first_call_` runs
  FirstCall first_call_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::runtime
