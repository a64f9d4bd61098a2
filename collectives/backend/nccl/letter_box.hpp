#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/nccl/exchange.hpp"

namespace elastic::collectives::nccl {

/// Between the thread that makes a communicator and the lane whose operations carry its letters to
/// the other ranks: so that takes no links of its own, and the lane never waits for it.
///
/// Any thread.
class LetterBox {
 public:
  /// Longer ones are cut off.
  static constexpr std::size_t kMostBytes = 510;

  /// For the communicator: until the letters of all ranks have been delivered. kAborted after
  /// `call_off`.
  Result<std::vector<std::string>> gather(const std::string& mine);
  void call_off();

  /// For the lane: the letter that waits to be carried.
  std::optional<std::string> waiting() const;
  /// The letters of all ranks, this one's too, in rank order.
  void deliver(std::vector<std::string> letters);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> mine_;
  std::optional<std::vector<std::string>> delivered_;
  bool called_off_ = false;
};

/// How a communicator reaches `box`.
Exchange exchange_by(std::shared_ptr<LetterBox> box);

}  // namespace elastic::collectives::nccl
