#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace elastic::device {

class StagedTensors;

/// A thread (`elastic-device`) that waits for the inputs of asynchronous calls, one after another,
/// and says when they are in host memory, so that no thread with other work waits for a device. It
/// is started with the first of them, and keeps tensors alive until they have arrived.
class Arrivals {
 public:
  Arrivals() = default;
  /// Waits for what is on its way.
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Any thread.
  void add(std::shared_ptr<StagedTensors> tensors, std::function<void()> then);

 private:
  struct Awaited {
    std::shared_ptr<StagedTensors> tensors;
    std::function<void()> then;
  };
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Awaited> awaited_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace elastic::device
