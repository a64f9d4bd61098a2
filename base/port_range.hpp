#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace elastic {

/// Ports that a listener may have, the first that is free.
struct PortRange {
  std::uint16_t first = 0;  ///< 0: any port
  std::uint16_t last = 0;

  /// "40000-40099", "40000"; "" for any. kInvalidArgument otherwise.
  static Result<PortRange> parse(const std::string& text);
  std::string text() const { return std::to_string(first) + "-" + std::to_string(last); }
};

}  // namespace elastic
