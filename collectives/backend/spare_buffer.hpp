#pragma once

#include <utility>

#include "base/mutex.hpp"
#include "collectives/backend/buffer.hpp"

namespace elastic::collectives {

/// A buffer for threads that seldom need one at the same time. While it is lent, other threads get
/// new buffers. When several buffers return, only the largest is kept.
///
/// Any thread.
class SpareBuffer {
 public:
  /// Borrows the buffer until it is destroyed, which must be before the SpareBuffer is.
  class Loan {
   public:
    explicit Loan(SpareBuffer& of) : of_(of), buffer_(of.take()) {}
    ~Loan() { of_.give_back(std::move(buffer_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    Buffer& buffer() { return buffer_; }

   private:
    SpareBuffer& of_;
    Buffer buffer_;
  };

 private:
  Buffer take() {
    const MutexLock lock(mutex_);
    return std::exchange(buffer_, Buffer());
  }
  void give_back(Buffer buffer) {
    const MutexLock lock(mutex_);
    if (buffer.capacity() > buffer_.capacity()) std::swap(buffer, buffer_);
  }

  Mutex mutex_;
  Buffer buffer_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::collectives
