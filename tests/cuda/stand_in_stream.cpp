#include "cuda/stand_in_stream.hpp"

#include <algorithm>
#include <utility>

namespace elastic::cuda_stand_in {

std::uint64_t Event::record() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ++recorded_;
}

void Event::reached(std::uint64_t recording) {
  // Under the lock, because the waiting thread may destroy this event as soon as it returns.
  const std::lock_guard<std::mutex> lock(mutex_);
  reached_ = std::max(reached_, recording);
  changed_.notify_all();
}

std::uint64_t Event::latest() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recorded_;
}

void Event::wait(std::uint64_t recording) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return reached_ >= recording; });
}

bool Event::is_reached(std::uint64_t recording) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reached_ >= recording;
}

Stream::~Stream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::queue(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queued_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void Stream::synchronize() {
  Event here;
  const std::uint64_t recording = here.record();
  queue([&here, recording] { here.reached(recording); });
  here.wait(recording);
}

void Stream::loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queued_.empty(); });
    if (queued_.empty()) return;
    const std::function<void()> work = std::move(queued_.front());
    queued_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace elastic::cuda_stand_in
