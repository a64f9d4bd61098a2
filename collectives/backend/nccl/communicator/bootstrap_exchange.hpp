#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

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
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint8_t round_ = 0;
  std::optional<std::string> mine_;
  std::optional<std::vector<std::string>> delivered_;
  bool called_off_ = false;
};

/// An Exchange through `bootstrap`, for a communicator.
Exchange exchange_by(std::shared_ptr<BootstrapExchange> bootstrap);

}  // namespace elastic::collectives::nccl
