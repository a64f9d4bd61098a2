#pragma once

#include <cstddef>

namespace elastic::transport {

class ArenaView;
class EagerChannel;

/// The features that a stream over shared memory has beside those of a Stream. `Link` asks its
/// first stream for them once, when the link is made. The stream owns everything here.
class SharedMemoryFeatures {
 public:
  virtual EagerChannel& eager_channel() = 0;

  /// The peer's arena, null where it has none or cannot be read.
  virtual ArenaView* arena() = 0;

  /// Bytes that are taken even if the peer reads nothing.
  virtual std::size_t capacity() const = 0;

 protected:
  ~SharedMemoryFeatures() = default;
};

}  // namespace elastic::transport
