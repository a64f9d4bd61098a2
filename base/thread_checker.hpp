#pragma once

#include <cassert>
#include <thread>

namespace elastic {

/// Asserts, in debug builds, that an object is used by the one thread that owns it: the first that
/// checks.
class ThreadChecker {
 public:
  void check() const {
#ifndef NDEBUG
    if (owner_ == std::thread::id()) owner_ = std::this_thread::get_id();
    assert(owner_ == std::this_thread::get_id());
#endif
  }

 private:
#ifndef NDEBUG
  mutable std::thread::id owner_;
#endif
};

}  // namespace elastic
