#pragma once

#include <functional>

#include "elastic/detail/export.hpp"

namespace elastic {

/// Lets a program end waits of the calling thread, for as long as this lives: while the thread
/// waits in a call of the library, the library calls `check` in it about every 100 ms, and at once
/// after a signal that has interrupted a system call. If `check` throws, the wait ends with that
/// exception.
///
/// A collective that ends in this way ends as Context describes for other exceptions: this worker
/// leaves the job, because the others may have the result; they go on without it. The same holds
/// for `commit`, and for `run` while a joiner waits. An interrupted Work::wait only ends the wait:
/// the operation goes on, and its tensors must live until it is complete.
///
/// For languages with signal handlers that run between instructions, such as Python, and for
/// programs with a flag that says that they are to end. No lock of the library is held while
/// `check` runs. Collectives, `commit`, `run` and `shutdown` throw Error(kInvalidArgument) in it.
/// It should be quick: a worker with a check that takes a second while the members change may be
/// evicted.
///
/// Thread safety: belongs to one thread, and is destroyed in the reverse order of construction.
class ELASTIC_API InterruptCheck {
 public:
  /// From now on this thread calls `check`, and no earlier one.
  explicit InterruptCheck(std::function<void()> check);
  /// Restores the earlier one.
  ~InterruptCheck();
  InterruptCheck(const InterruptCheck&) = delete;
  InterruptCheck& operator=(const InterruptCheck&) = delete;

 private:
  std::function<void()> check_;
  const std::function<void()>* outer_;
};

}  // namespace elastic
