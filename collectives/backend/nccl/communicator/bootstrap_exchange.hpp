#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "collectives/backend/nccl/communicator/exchange.hpp"

namespace elastic::collectives::nccl {

/// A message of the thread that makes a communicator to the other ranks.
struct BootstrapMessage {
  /// Number of earlier exchanges. Lanes carry the messages independently of each other, so one may
  /// arrive twice.
  std::uint8_t round = 0;
  std::string text;
};

/// Connects the thread that makes a communicator with the lanes, whose operations carry its
/// messages to other ranks. So the thread needs no links of its own, and no lane waits for it.
///
/// Any thread.
class BootstrapExchange {
 public:
  /// In bytes; longer texts are cut.
  static constexpr std::size_t kMostBytes = 509;

  /// For the communicator: posts `mine`, and waits until a lane has delivered the messages of all
  /// ranks. kAborted after `call_off`.
  Result<std::vector<std::string>> allgather(const std::string& mine);
  void call_off();

  /// For a lane: the message that waits to be carried.
  std::optional<BootstrapMessage> waiting() const;
  /// For a lane: delivers the messages of all ranks in `round`, this rank's included, in rank
  /// order. Does nothing if another lane has delivered this round.
  void deliver(std::uint8_t round, std::vector<std::string> messages);

  /// The number of delivered rounds.
  std::uint8_t rounds() const;

 private:
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::uint8_t round_ ELASTIC_GUARDED_BY(mutex_) = 0;
  std::optional<std::string> mine_ ELASTIC_GUARDED_BY(mutex_);
  std::optional<std::vector<std::string>> delivered_ ELASTIC_GUARDED_BY(mutex_);
  bool called_off_ ELASTIC_GUARDED_BY(mutex_) = false;
};

/// An Exchange through `bootstrap`, for a communicator.
Exchange exchange_by(std::shared_ptr<BootstrapExchange> bootstrap);

}  // namespace elastic::collectives::nccl
