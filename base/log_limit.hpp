#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"

namespace elastic {

/// How many log lines others can cause, such as unauthenticated peers: some at once, then one per
/// second. Pure.
/// Belongs to one thread.
class LogLimit {
 public:
  static constexpr std::uint64_t kAtOnce = 10;
  static constexpr Milliseconds kPeriod{1000};

  /// Returns nothing if no line may be written now. Otherwise the text for the end of the line: the
  /// number of lines that were left out since the last one, or "".
  std::optional<std::string> admit(TimePoint now) {
    if (!since_) since_ = now;
    const auto periods = (now - *since_) / kPeriod;
    if (periods > 0) {
      tokens_ = std::min<std::uint64_t>(kAtOnce, tokens_ + static_cast<std::uint64_t>(periods));
      *since_ += periods * kPeriod;
    }
    if (tokens_ == 0) {
      ++left_out_;
      return std::nullopt;
    }
    --tokens_;
    if (left_out_ == 0) return "";
    std::string note = " (" + std::to_string(left_out_) + " such lines were left out)";
    left_out_ = 0;
    return note;
  }

 private:
  std::uint64_t tokens_ = kAtOnce;
  std::uint64_t left_out_ = 0;
  std::optional<TimePoint> since_;
};

}  // namespace elastic
