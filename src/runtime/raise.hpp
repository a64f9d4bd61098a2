#pragma once

#include "base/status.hpp"
#include "elastic/context.hpp"
#include "elastic/error.hpp"

namespace elastic::runtime {

/// Leaves the body of `run` when this worker has to go. An Error, so that a body that catches
/// errors by itself sees what happens.
struct Departure : Error {
  Departure(ErrorCode code, const std::string& message, RunOutcome how)
      : Error(code, message), outcome(how) {}
  RunOutcome outcome;
};

/// Throws what the caller sees for a failure.
[[noreturn]] void raise(const Status& failure);
inline void raise_if(const Status& status) {
  if (!status.ok()) raise(status);
}
/// The value, or throws.
template <typename T>
T take(Result<T> result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

}  // namespace elastic::runtime
