#pragma once

#include <cstddef>
#include <cstdint>

#include "elastic/types.hpp"

namespace elastic::kernels {

/// Which of several values a reduction with indices keeps.
enum class Extreme : std::uint8_t { kLeast, kGreatest };

/// Elements with an index each. They need not be aligned.
struct ValuesAndIndices {
  std::byte* values;   ///< of one dtype
  std::byte* indices;  ///< std::int64_t
};
struct ConstValuesAndIndices {
  const std::byte* values;
  const std::byte* indices;
};

/// Puts each pair of `others` in the place of that of `kept` if its value is more extreme, or if
/// the values are equal and its index is less. A NaN is more extreme than every number, and equal
/// to every other NaN; 0.0 and -0.0 are equal. If both value and index are equal, the pair in
/// `kept` stays, with its bits.
void keep_extremes(DType dtype, Extreme extreme, const ValuesAndIndices& kept,
                   const ConstValuesAndIndices& others, std::size_t elements);

}  // namespace elastic::kernels
