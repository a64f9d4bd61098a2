#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/status.hpp"
#include "elastic/types.hpp"

namespace elastic::device {

/// When the inputs of tensors on devices are copied to host memory.
enum class Fetch {
  kAtOnce,    ///< as soon as the device has made them
  kOnDemand,  ///< by `fetch`: the backend of the operation may take them in place
};

/// Tensors that an operation does not have to work on in place: their inputs come to host memory
/// before it, and its results are brought back after it. This is the coordinator's view of them.
class Staged {
 public:
  virtual ~Staged() = default;

  /// Whether the inputs are there (in host memory, or with kOnDemand: made by the device), or why
  /// they will not be; nothing while they are on their way. Any thread.
  virtual std::optional<Status> arrival() const = 0;
  /// Calls `then` once `arrival` has something to say, from some thread. Once.
  virtual void when_arrived(std::function<void()> then) = 0;

  virtual Fetch when() const = 0;
  /// As the program gave them.
  virtual const std::vector<ConstTensorView>& given_inputs() const = 0;
  virtual const std::vector<TensorView>& given_outputs() const = 0;
  /// Where an operation in host memory finds its inputs and leaves its results. With kOnDemand they
  /// have no addresses before `make_room`.
  virtual const std::vector<ConstTensorView>& inputs() const = 0;
  virtual const std::vector<TensorView>& outputs() const = 0;
  /// With kOnDemand: takes the host memory that they go through.
  virtual Status make_room() = 0;
  /// `make_room`, and waits until the inputs are there. Nothing, where they have been brought.
  virtual Status fetch() = 0;

  /// The results lie in the tensors already, or cannot be brought there: what `send_back` says.
  virtual void are_back(Status outcome) = 0;
  /// Begins to copy the results to the tensors; the next waits until they are there. A failure
  /// leaves the tensors undefined.
  virtual Status send_back() = 0;
  virtual Status wait_until_back() = 0;
};

}  // namespace elastic::device
