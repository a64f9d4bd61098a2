#pragma once

#include <cstdint>

namespace elastic::kernels {

/// How results get to memory.
enum class Store : std::uint8_t {
  kCached,
  /// Past the caches, which saves reading what is overwritten: for more than they hold, or for what
  /// nobody here reads soon. When the function returns, stores that follow it are seen after its.
  kStreaming
};

}  // namespace elastic::kernels
