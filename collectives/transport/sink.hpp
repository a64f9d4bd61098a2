#pragma once

#include <cstddef>
#include <span>

namespace elastic::transport {

/// How received bytes are combined with an operand: whole elements, result = operand op received.
struct Combine {
  /// `into` may be `left` or `right`.
  using Function = void (*)(std::byte* into, const std::byte* left, const std::byte* right,
                            std::size_t elements);
  Function function = nullptr;  ///< null: copy
  std::size_t element = 1;      ///< bytes of an element; payloads are cut only between elements
  const std::byte* operand = nullptr;  ///< as long as the message; null: the bytes already in
                                       ///< Sink::into
  bool received_first = false;         ///< result = received op operand
};

/// Told of memory that a message is about to be written to, so that it can be kept as it was.
/// Several threads may call it at once, for memory that does not overlap (FlowThreads).
class Overwriting {
 public:
  virtual void about_to(std::span<std::byte> memory) = 0;

 protected:
  ~Overwriting() = default;
};

/// Where a message goes.
struct Sink {
  std::span<std::byte> into;
  Combine combine{};
  Overwriting* overwriting = nullptr;  ///< called once for each byte of `into`; may be null
};

}  // namespace elastic::transport
