#include "collectives/device/landing.hpp"

#include <algorithm>
#include <utility>

namespace elastic::device {

/// The last tensors on each stream: all others are there before.
Landing::Tensors Landing::last_of(const Tensors& all) {
  Tensors last;
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    const auto is_same_way = [&](const auto& found) {
      return found->way_back() == (*each)->way_back();
    };
    if ((*each)->way_back() != nullptr && std::ranges::none_of(last, is_same_way)) {
      last.push_back(*each);
    }
  }
  return last;
}

bool Landing::is_over() {
  {
    const MutexLock lock(mutex_);
    if (outcome_) return true;
    if (awaited_) return false;
    if (!std::ranges::all_of(last_, [](const auto& each) { return each->is_back(); })) return false;
  }
  (void)wait();  // which does not take long any more
  return true;
}

Status Landing::wait() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return outcome_ || !awaited_; });
  if (outcome_) return *outcome_;
  awaited_ = true;
  lock.unlock();
  Status status;
  for (const auto& each : last_) {
    Status back = each->wait_until_back();
    if (status.ok()) status = std::move(back);
  }
  if (!status.ok() && failed_) status = failed_(status);
  lock.lock();
  outcome_ = status;
  awaited_ = false;
  const Tensors over = std::exchange(all_, {});
  lock.unlock();
  changed_.notify_all();
  for (const auto& each : over) each->have_landed();
  return status;
}

Status Landing::put_behind(CudaStream stream) {
  {
    const MutexLock lock(mutex_);
    if (outcome_) return *outcome_;
  }
  for (const auto& each : last_) {
    if (Status status = each->put_behind(stream); !status.ok()) return status;
  }
  return {};
}

}  // namespace elastic::device
