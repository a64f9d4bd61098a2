#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace elastic::cuda_stand_in {

struct Context {
  int device = 0;
};

/// Comes true when a stream has come to where it was recorded last.
class Event {
 public:
  /// Which recording this is.
  std::uint64_t record();
  void reached(std::uint64_t recording);
  std::uint64_t latest() const;
  /// Waits until that recording, or a later one, is reached.
  void wait(std::uint64_t recording) const;
  bool is_reached(std::uint64_t recording) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t recorded_ = 0;
  std::uint64_t reached_ = 0;
};

/// Does what is queued on it in order, on a thread of its own.
class Stream {
 public:
  explicit Stream(Context* context) : context_(context), thread_([this] { loop(); }) {}
  /// Waits for all queued work.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Context* context() const { return context_; }
  void queue(std::function<void()> work);
  void synchronize();

  std::atomic<bool> capturing{false};
  int priority = 0;

 private:
  void loop();

  Context* const context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queued_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace elastic::cuda_stand_in
