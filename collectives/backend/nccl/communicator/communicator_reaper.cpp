#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace elastic::collectives::nccl {

namespace {

bool is_retired(const std::shared_ptr<Communicator>& communicator) {
  return communicator->phase() == Phase::kRetired;
}

}  // namespace

void CommunicatorReaper::add(std::shared_ptr<Communicator> communicator) noexcept {
  communicator->abort();
  keep(std::move(communicator));
}

void CommunicatorReaper::add_retired(std::shared_ptr<Communicator> communicator) noexcept {
  keep(std::move(communicator));
}

void CommunicatorReaper::keep(std::shared_ptr<Communicator> communicator) noexcept {
  const MutexLock lock(mutex_);
  if (std::ranges::find(communicators_, communicator) != communicators_.end()) return;
  try {
    communicators_.push_back(std::move(communicator));
  } catch (const std::bad_alloc&) {
    return;  // the communicator still ends, but no thread waits for its end
  }
}

Result<bool> CommunicatorReaper::over() {
  if (Status stuck = forget_ended(Clock::now()); !stuck.ok()) return stuck;
  const MutexLock lock(mutex_);
  return std::ranges::all_of(communicators_, is_retired);
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
    // Its end comes before that of the communicator that is being made of it.
    const Status ended = each->ended(is_retired(each) ? Clock::now() : until);
    if (ended.code() == Code::kTimeout) continue;
    const MutexLock lock(mutex_);
    std::erase(communicators_, each);
    if (!ended.ok() && stuck_.ok()) stuck_ = ended.within("NCCL");
  }
  const MutexLock lock(mutex_);
  return stuck_;
}

}  // namespace elastic::collectives::nccl
