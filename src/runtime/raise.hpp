#pragma once

#include <string>

#include "base/status.hpp"
#include "elastic/context.hpp"
#include "elastic/error.hpp"

namespace elastic::runtime {

/// Thrown out of the body of `run` when this worker has to leave. It is an Error, so that a body
/// that catches errors sees it.
struct MustLeave : Error {
  MustLeave(ErrorCode code, const std::string& message, RunOutcome how)
      : Error(code, message), outcome(how) {}
  RunOutcome outcome;
};

/// The text of an error, without the name of the library, which Error puts in front.
std::string text_of(const Error& error);

/// Throws the caller's error for `failure`.
[[noreturn]] void raise(const Status& failure);
inline void raise_if(const Status& status) {
  if (!status.ok()) raise(status);
}
/// Returns the value, or throws the caller's error.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

}  // namespace elastic::runtime
