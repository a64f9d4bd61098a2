#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"

#include <new>
#include <utility>

namespace elastic::collectives::nccl {

void CommunicatorReaper::add(std::shared_ptr<Communicator> communicator) noexcept {
  communicator->abort();
  const MutexLock lock(mutex_);
  try {
    communicators_.push_back(std::move(communicator));
  } catch (const std::bad_alloc&) {
    return;  // the communicator still ends, but no thread waits for its end
  }
}

Result<bool> CommunicatorReaper::over() {
  if (Status stuck = forget_ended(Clock::now()); !stuck.ok()) return stuck;
  const MutexLock lock(mutex_);
  return communicators_.empty();
}

Status CommunicatorReaper::wait() {
  return forget_ended(TimePoint::max());
}

std::vector<std::shared_ptr<Communicator>> CommunicatorReaper::all() {
  const MutexLock lock(mutex_);
  return communicators_;
}

Status CommunicatorReaper::forget_ended(TimePoint until) {
  for (const auto& each : all()) {
    const Status ended = each->ended(until);
    if (ended.code() == Code::kTimeout) continue;
    const MutexLock lock(mutex_);
    std::erase(communicators_, each);
    if (!ended.ok() && stuck_.ok()) stuck_ = ended.within("NCCL");
  }
  const MutexLock lock(mutex_);
  return stuck_;
}

}  // namespace elastic::collectives::nccl
