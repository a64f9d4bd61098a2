#include "benchmarks/report/byte_size.hpp"

#include <charconv>
#include <limits>
#include <string>

namespace elastic::bench {

namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

// The binary logarithm of the unit K, M or G; -1 if it is unknown.
int shift_of(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix.size() > 1) return -1;
  switch (suffix.front()) {
    case 'K':
    case 'k':
      return 10;
    case 'M':
    case 'm':
      return 20;
    case 'G':
    case 'g':
      return 30;
    default:
      return -1;
  }
}

}  // namespace

Result<std::size_t> parse_byte_size(std::string_view text) {
  std::size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const int shift = shift_of(std::string_view(rest, static_cast<std::size_t>(end - rest)));
  if (error != std::errc() || shift < 0 || number == 0 || number > (kMost >> shift)) {
    return Status(Code::kInvalidArgument, "\"" + std::string(text) +
                                              "\" is not a number of bytes of at least 1, with or "
                                              "without one of the suffixes K, M and G");
  }
  return number << shift;
}

std::vector<std::size_t> sizes_of(const SizeRange& range) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = range.min; size <= range.max;) {
    sizes.push_back(size);
    // The next size would overflow.
    if (range.increment > 0 ? size > kMost - range.increment : size > kMost / range.factor) break;
    size = range.increment > 0 ? size + range.increment : size * range.factor;
  }
  return sizes;
}

}  // namespace elastic::bench
