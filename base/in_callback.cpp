#include "base/in_callback.hpp"

#include <string>
#include <utility>

#include "elastic/error.hpp"

namespace elastic {

namespace {
/// The innermost callback that the thread is in; empty where it is in none.
constinit thread_local std::string_view callback_of_thread;
}  // namespace

InCallback::InCallback(std::string_view what) noexcept
    : outer_(std::exchange(callback_of_thread, what)) {}

InCallback::~InCallback() {
  callback_of_thread = outer_;
}

void refuse_in_callback(const char* call) {
  if (callback_of_thread.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(call) + " was called in " + std::string(callback_of_thread) +
                  ", which the library calls while other workers may wait for this one; no "
                  "collective, commit, run or shutdown is possible there: keep what is needed, and "
                  "call when the function has returned");
}

}  // namespace elastic
