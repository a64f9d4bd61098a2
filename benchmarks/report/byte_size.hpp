#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace elastic::bench {

/// Parses "8", "64K", "1M" or "2G" (powers of 1024, either case). The least size is 1.
Result<std::size_t> parse_byte_size(std::string_view text);

/// The sizes of a table from `min` to `max`. Each is `factor` times the last, or if `increment` is
/// not 0, larger by it.
struct SizeRange {
  std::size_t min = 8;
  std::size_t max = std::size_t{64} << 20;
  std::size_t factor = 2;
  std::size_t increment = 0;
};
std::vector<std::size_t> sizes_of(const SizeRange& range);

}  // namespace elastic::bench
