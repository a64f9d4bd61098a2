#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace elastic::fuzz {

/// The bytes of libFuzzer, read from the front. Numbers are 0 when the input is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(std::as_bytes(std::span(data, size))) {}

  bool empty() const { return left_.empty(); }
  std::size_t size() const { return left_.size(); }

  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const auto taken = std::to_integer<std::uint8_t>(left_.front());
    left_ = left_.subspan(1);
    return taken;
  }
  /// Below 2^24: small numbers are what is interesting.
  std::uint32_t number() {
    const std::uint32_t low = byte();
    return low < 0xF0 ? low : (low & 0xFU) << 16 | std::uint32_t{byte()} << 8 | byte();
  }
  std::span<const std::byte> bytes(std::size_t count) {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::string_view text(std::size_t count) {
    const auto taken = bytes(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::span<const std::byte> left_;
};

/// Ends the program, which libFuzzer takes for a finding, unless it holds.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace elastic::fuzz
