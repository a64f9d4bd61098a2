#pragma once

#include <nanobind/nanobind.h>

namespace elastic::python {

/// The lock of the interpreter, as nanobind::gil_scoped_release and gil_scoped_acquire have it, for
/// threads that may outlive the interpreter. A daemon thread that asks for the lock while the
/// interpreter ends is made to exit by Python, out of any frame, and the process would abort:
/// destructors and other functions that are noexcept are among these frames. Such a thread sleeps
/// until the process has ended instead.

/// Released for as long as this lives.
class ReleasedLock {
 public:
  ReleasedLock() noexcept : state_(PyEval_SaveThread()) {}
  ~ReleasedLock();
  ReleasedLock(const ReleasedLock&) = delete;
  ReleasedLock& operator=(const ReleasedLock&) = delete;

 private:
  PyThreadState* state_;
};

/// Held for as long as this lives.
class HeldLock {
 public:
  HeldLock();
  ~HeldLock() { PyGILState_Release(state_); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Held for as long as this lives, unless the interpreter is ending: for a thread of the library,
/// which the end of the process waits for.
class OfferedLock {
 public:
  OfferedLock();
  ~OfferedLock() {
    if (held_) PyGILState_Release(state_);
  }
  OfferedLock(const OfferedLock&) = delete;
  OfferedLock& operator=(const OfferedLock&) = delete;

  /// Whether it is held.
  explicit operator bool() const noexcept { return held_; }

 private:
  bool held_ = false;
  PyGILState_STATE state_{};
};

/// For a thread that Python makes exit: its frames would release a lock that it does not hold.
[[noreturn]] void sleep_until_exit() noexcept;

/// Has Python say when the interpreter ends.
void watch_for_interpreter_end();

}  // namespace elastic::python
