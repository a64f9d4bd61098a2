#pragma once

namespace elastic::runtime {

/// While it lives this thread is in Context::run. A thread that exits the process from the body
/// does not wait for itself.
class OwnRun {
 public:
  OwnRun() noexcept { ++count_; }
  ~OwnRun() { --count_; }
  OwnRun(const OwnRun&) = delete;
  OwnRun& operator=(const OwnRun&) = delete;

  /// How many this thread is in.
  static int count() noexcept { return count_; }

 private:
  inline static thread_local int count_ = 0;
};

}  // namespace elastic::runtime
