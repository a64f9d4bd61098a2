#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "elastic.h"

namespace elastic::c {

/// A function that the program gave has returned `code`.
class CallbackFailed : public std::runtime_error {
 public:
  CallbackFailed(elastic_code code, const std::string& what)
      : std::runtime_error(what), code_(code) {}
  elastic_code code() const noexcept { return code_; }

 private:
  elastic_code code_;
};

/// Keeps the exception under way as this thread's latest error, and returns its code. Called where
/// one is being handled.
elastic_code keep_error() noexcept;

/// Runs `body`, whose exceptions become codes.
template <typename Body>
elastic_code guarded(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return ELASTIC_OK;
  } catch (...) {
    return keep_error();
  }
}

/// Forgets the exception of this thread's latest error, not its text.
void forget_exception() noexcept;
/// Throws for a `code` that the program's function `what` has returned, unless it is ELASTIC_OK:
/// the exception of this thread's latest error where that has the same code.
void raise_code(elastic_code code, const char* what);

/// `code`, or ELASTIC_CALLBACK_FAILED where it is none of elastic's.
elastic_code known_code(elastic_code code) noexcept;

/// Calls a function that the program gave. If it returns the code of a call of ours that failed in
/// it, the library sees that call's own exception.
template <typename Function>
void call_back(const char* what, Function&& function) {
  forget_exception();
  raise_code(std::forward<Function>(function)(), what);
}

/// Throws Error(kInvalidArgument), "<call>: <what> is NULL", where `pointer` is.
void require(const void* pointer, const char* call, const char* what);

}  // namespace elastic::c
