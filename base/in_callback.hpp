#pragma once

#include <string_view>

namespace elastic {

/// The calling thread is in a function of the program that the library called, for as long as this
/// lives. Such a function may run while the library holds a collective, which others wait for, so
/// calls that wait for other workers are refused in it.
class InCallback {
 public:
  /// `what`, for messages to users ("save() of the state entry 'x'"), outlives this.
  explicit InCallback(std::string_view what) noexcept;
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  std::string_view outer_;
};

/// Throws Error(kInvalidArgument) in a callback. `call` is what the program has called.
void refuse_in_callback(const char* call);

}  // namespace elastic
