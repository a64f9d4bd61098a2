#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct XXH3_state_s;

namespace elastic {

/// xxh3, 64 bits.
std::uint64_t hash_of(std::span<const std::byte> bytes);

/// The hash of bytes that come in pieces.
class PiecewiseHash {
 public:
  PiecewiseHash();

  void reset();
  void add(std::span<const std::byte> bytes);
  /// Equals `hash_of` all that was added since `reset`.
  std::uint64_t value() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace elastic
