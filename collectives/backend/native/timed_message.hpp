#pragma once

#include <cstddef>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/plan/hosts.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/plan/schedule.hpp"

namespace elastic::collectives {

/// The ranks that a rank sends to and receives from; kNone if there is none.
struct Neighbours {
  int next = plan::Step::kNone;
  int previous = plan::Step::kNone;
  bool any() const { return next >= 0 || previous >= 0; }
};

/// The previous and the next rank on the same host.
Neighbours inside_host(int rank, const plan::Hosts& hosts);
/// The ranks with the same local rank on the previous and the next host, if those have so many.
Neighbours between_hosts(int rank, const plan::Hosts& hosts);

/// A message to the next rank, while one of the same length comes from the previous rank.
class TimedMessage {
 public:
  TimedMessage(const Neighbours& neighbours, std::size_t bytes);

  /// \returns the time until the message is sent and the other has arrived.
  Result<Duration> run(Executor& executor);

 private:
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  Schedule schedule_;
};

}  // namespace elastic::collectives
