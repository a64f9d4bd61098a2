#pragma once

namespace elastic::runtime {

/// While it lives this thread is in Context::run. A thread that exits the process from the body
/// does not wait for itself.
class OwnRun {
 public:
  OwnRun() noexcept { ++of_this_thread(); }
  ~OwnRun() { --of_this_thread(); }
  OwnRun(const OwnRun&) = delete;
  OwnRun& operator=(const OwnRun&) = delete;

  /// How many this thread is in.
  static int count() noexcept { return of_this_thread(); }

 private:
  static int& of_this_thread() noexcept {
    static thread_local int count = 0;
    return count;
  }
};

}  // namespace elastic::runtime
