// The choice of the k elements of greatest magnitude.
//
// Radix selection: the magnitudes are unsigned numbers of 32 bits. Four passes find the least one
// that is sent, eight bits each: a pass counts the next digit of the elements whose higher digits
// are known to be those of the least one, and takes the digit at which k elements are reached. Then
// each run of kRun elements counts those above the least magnitude and those equal to it, the sums
// over the runs in front of it are its place in the result, and the runs write their elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/kernels/device/codec/elements.hpp"

namespace elastic::kernels::codec {

inline constexpr std::uint32_t kDigits = 256;
inline constexpr std::uint32_t kPasses = 4;
inline constexpr std::uint32_t kRun = 16;  ///< elements of a thread

/// State between the passes, in device memory.
struct TopKSelection {
  std::uint32_t least;  ///< digits found so far; in the end the least magnitude that is sent
  std::uint32_t left;   ///< elements still to choose; in the end those equal to `least`
  std::uint32_t counts[kDigits];  ///< of the pass under way
};

/// How many elements are above the least magnitude, and how many equal to it.
struct Chosen {
  std::uint32_t above;
  std::uint32_t equal;
};

ELASTIC_HOST_DEVICE inline std::uint32_t digit_of(std::uint32_t magnitude, std::uint32_t pass) {
  return magnitude >> (24 - 8 * pass) & (kDigits - 1);
}

/// Whether the digits before those of `pass` are those of `least`.
ELASTIC_HOST_DEVICE inline bool may_be_least(std::uint32_t magnitude, std::uint32_t least,
                                             std::uint32_t pass) {
  return pass == 0 || (magnitude ^ least) >> (32 - 8 * pass) == 0;
}

/// Takes the digit of `pass` from the counts of it.
ELASTIC_HOST_DEVICE inline void take_digit(const std::uint32_t* counts, std::uint32_t pass,
                                           TopKSelection& selection) {
  std::uint32_t digit = kDigits - 1;
  std::uint32_t left = selection.left;
  while (digit > 0 && counts[digit] < left) {
    left -= counts[digit];
    --digit;
  }
  selection.left = left;
  selection.least |= digit << (24 - 8 * pass);
}

ELASTIC_HOST_DEVICE inline Chosen count_chosen(const float* values, std::uint64_t first,
                                               std::uint64_t end, std::uint32_t least) {
  Chosen chosen{0, 0};
  for (std::uint64_t at = first; at < end; ++at) {
    const std::uint32_t magnitude = magnitude_bits(values[at]);
    chosen.above += magnitude > least ? 1 : 0;
    chosen.equal += magnitude == least ? 1 : 0;
  }
  return chosen;
}

/// Writes the chosen elements from `first` to `end` to `bytes`, which has `sent` indices and then
/// as many values, and sets them to 0, as other elements that are not finite. `before` counts the
/// elements in front of `first`. `momentum` may be null.
ELASTIC_HOST_DEVICE inline void write_chosen(float* values, float* momentum, std::uint64_t first,
                                             std::uint64_t end, const TopKSelection& selection,
                                             Chosen before, std::uint32_t sent,
                                             std::uint8_t* bytes) {
  std::uint32_t equal = before.equal;
  std::uint64_t place =
      before.above + std::uint64_t{equal < selection.left ? equal : selection.left};
  for (std::uint64_t at = first; at < end; ++at) {
    const float value = values[at];
    const std::uint32_t magnitude = magnitude_bits(value);
    const bool is_equal = magnitude == selection.least;
    const bool is_sent = magnitude > selection.least || (is_equal && equal < selection.left);
    if (is_equal) ++equal;
    if (is_sent) {
      store_word(bytes + 4 * place, static_cast<std::uint32_t>(at));
      store_float(bytes + 4 * (sent + place), value);
      ++place;
    }
    if (!is_sent && is_finite(value) && (momentum == nullptr || is_finite(momentum[at]))) continue;
    values[at] = 0;
    if (momentum != nullptr) momentum[at] = 0;
  }
}

}  // namespace elastic::kernels::codec
