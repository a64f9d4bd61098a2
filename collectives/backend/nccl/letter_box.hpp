#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/nccl/exchange.hpp"

namespace elastic::collectives::nccl {

/// What the thread that makes a communicator has for the other ranks.
struct Letter {
  /// How often the ranks have exchanged letters before. Lanes carry them independently of each
  /// other, so one may come twice.
  std::uint8_t round = 0;
  std::string text;
};

/// Between the thread that makes a communicator and the lanes whose operations carry its letters to
/// the other ranks: so that takes no links of its own, and a lane never waits for it.
///
/// Any thread.
class LetterBox {
 public:
  /// Longer texts are cut off.
  static constexpr std::size_t kMostBytes = 509;

  /// For the communicator: until the letters of all ranks have been delivered. kAborted after
  /// `call_off`.
  Result<std::vector<std::string>> gather(const std::string& mine);
  void call_off();

  /// For a lane: the letter that waits to be carried.
  std::optional<Letter> waiting() const;
  /// The letters of all ranks in `round`, this one's too, in rank order. Nothing where they have
  /// been delivered before.
  void deliver(std::uint8_t round, std::vector<std::string> letters);

  /// How often letters have been delivered.
  std::uint8_t rounds() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint8_t round_ = 0;
  std::optional<std::string> mine_;
  std::optional<std::vector<std::string>> delivered_;
  bool called_off_ = false;
};

/// How a communicator reaches `box`.
Exchange exchange_by(std::shared_ptr<LetterBox> box);

}  // namespace elastic::collectives::nccl
