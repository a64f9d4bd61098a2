#include "collectives/device/arrivals.hpp"

#include <utility>

#include "base/thread_name.hpp"
#include "collectives/device/staged_tensors.hpp"

namespace elastic::device {

Arrivals::~Arrivals() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Arrivals::add(std::shared_ptr<StagedTensors> tensors, std::function<void()> then) {
  {
    const MutexLock lock(mutex_);
    awaited_.push_back({std::move(tensors), std::move(then)});
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  }
  changed_.notify_all();
}

void Arrivals::loop() {
  name_this_thread("elastic-device");
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return ending_ || !awaited_.empty(); });
    if (awaited_.empty()) return;
    Awaited next = std::move(awaited_.front());
    awaited_.pop_front();
    lock.unlock();
    (void)next.tensors->wait_for_arrival();  // `arrival` has the outcome
    next.then();
    next = {};
    lock.lock();
  }
}

}  // namespace elastic::device
