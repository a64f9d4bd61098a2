#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.hpp"

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

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Awaited> awaited_ ELASTIC_GUARDED_BY(mutex_);
  bool ending_ ELASTIC_GUARDED_BY(mutex_) = false;
  std::thread thread_ ELASTIC_GUARDED_BY(mutex_);
};

}  // namespace elastic::device
