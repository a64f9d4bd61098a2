#pragma once

#include <cstdint>

namespace elastic::fuzz {

/// The first byte of each step that the peer of `data_frame_fuzz` makes.
struct Step {
  static constexpr std::uint8_t kData = 0;       ///< a frame of a message
  static constexpr std::uint8_t kNote = 1;       ///< a frame of a note
  static constexpr std::uint8_t kDamaged = 2;    ///< a frame with a flipped bit
  static constexpr std::uint8_t kBytes = 3;      ///< these bytes
  static constexpr std::uint8_t kBegin = 4;      ///< the link begins another operation
  static constexpr std::uint8_t kTakeNotes = 5;  ///< the link's owner takes notes
};
constexpr std::uint8_t kSteps = 6;

}  // namespace elastic::fuzz
