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
  Status status;
  {
    const MutexLock lock(mutex_);
    if (outcome_) return true;
    if (awaited_) return false;
    for (const auto& each : last_) {
      std::optional<Status> back = each->look_whether_back();
      if (!back) return false;
      if (status.ok()) status = *std::move(back);
    }
    awaited_ = true;
  }
  (void)end(status);
  return true;
}

Status Landing::wait() {
  {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return outcome_ || !awaited_; });
    if (outcome_) return *outcome_;
    awaited_ = true;
  }
  Status status;
  for (const auto& each : last_) {
    Status back = each->wait_until_back();
    if (status.ok()) status = std::move(back);
  }
  return end(status);
}

/// By the thread that has set `awaited_`.
Status Landing::end(Status status) {
  if (!status.ok() && failed_) status = failed_(status);
  Tensors over;
  {
    const MutexLock lock(mutex_);
    outcome_ = status;
    awaited_ = false;
    over.swap(all_);
  }
  changed_.notify_all();
  for (const auto& each : over) each->have_landed();
  return status;
}

Status Landing::put_behind(const StagedTensors& its, CudaStream stream) {
  {
    const MutexLock lock(mutex_);
    if (outcome_) return *outcome_;
  }
  for (const auto& each : last_) {
    if (!each->is_on_device_of(its)) continue;
    if (Status status = each->put_behind(stream); !status.ok()) return status;
  }
  return {};
}

}  // namespace elastic::device
