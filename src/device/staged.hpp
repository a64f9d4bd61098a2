#pragma once

#include <functional>
#include <optional>

#include "base/status.hpp"

namespace elastic::device {

/// Tensors that an operation does not work on where they lie: their inputs come to host memory
/// before it, and its results are brought back after it. What the coordinator has to know of them.
class Staged {
 public:
  virtual ~Staged() = default;

  /// Whether the inputs are in host memory, or why they will not be; nothing while they are on
  /// their way. Any thread.
  virtual std::optional<Status> arrival() const = 0;
  /// Calls `then` once `arrival` has something to say, from some thread. Once.
  virtual void when_arrived(std::function<void()> then) = 0;

  /// Begins to copy the results to the tensors; the next waits until they are there. A failure
  /// leaves the tensors undefined.
  virtual Status send_back() = 0;
  virtual Status wait_until_back() = 0;
};

}  // namespace elastic::device
