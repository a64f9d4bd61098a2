#include "collectives/backend/nccl/communicator/view_communicators.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"

namespace elastic::collectives::nccl {

namespace {

/// Whether ranks of `old` may have become those of `view`: at least two, for which NCCL shrinks its
/// communicator, and less than before. The ranks' messages tell the rest.
bool may_shrink(const DecidedView& old, const DecidedView& view) {
  return view.size >= 2 && view.size < old.size;
}

}  // namespace

std::shared_ptr<ViewCommunicator> ViewCommunicators::of(const std::string& worker, DecidedView view,
                                                        const NcclServices& services) {
  MutexLock lock(mutex_);
  forget_ended();
  std::weak_ptr<ViewCommunicator>& known = all_[{worker, view.generation}];
  std::shared_ptr<ViewCommunicator> its = known.lock();
  if (its) return its;
  known = its = std::make_shared<ViewCommunicator>(worker, view, services);
  newest_[worker] = {view};
  const std::shared_ptr<Communicator> useless = take_useless(worker);
  lock.unlock();
  if (useless) services.reaper->add(useless);
  return its;
}

bool ViewCommunicators::has_no_other_than(const std::string& worker) {
  const MutexLock lock(mutex_);
  forget_ended();
  return std::ranges::all_of(all_, [&](const auto& each) { return each.first.first == worker; });
}

void ViewCommunicators::forget_ended() {
  std::erase_if(all_, [](const auto& each) { return each.second.expired(); });
}

/// The retired communicator of `worker` if it cannot be shrunk to the newest view.
std::shared_ptr<Communicator> ViewCommunicators::take_useless(const std::string& worker) {
  const auto found = retired_.find(worker);
  if (found == retired_.end()) return nullptr;
  const DecidedView& old = found->second.communicator->view();
  const Newest& newest = newest_[worker];
  // If the views are the same, the next one is not known yet.
  if (newest.view.generation == old.generation) return nullptr;
  if (!newest.has_begun && may_shrink(old, newest.view)) return nullptr;
  std::shared_ptr<Communicator> useless = std::move(found->second.communicator);
  retired_.erase(found);
  return useless;
}

void ViewCommunicators::retire(const std::string& worker,
                               std::shared_ptr<Communicator> communicator,
                               const SharedDevice& device, CommunicatorReaper& reaper) noexcept {
  std::shared_ptr<Communicator> useless;
  try {
    const MutexLock lock(mutex_);
    Retired& place = retired_[worker];
    useless = std::exchange(place.communicator, communicator);
    place.device = &device;
    const std::shared_ptr<Communicator> kept = std::exchange(communicator, take_useless(worker));
    if (!communicator) reaper.add_retired(kept);
  } catch (const std::bad_alloc&) {
    // it ends
  }
  if (useless) reaper.add(std::move(useless));
  if (communicator) reaper.add(std::move(communicator));
}

void ViewCommunicators::end_retired_elsewhere(const std::string& worker, const SharedDevice& device,
                                              CommunicatorReaper& reaper) {
  MutexLock lock(mutex_);
  const auto found = retired_.find(worker);
  if (found == retired_.end() || found->second.device == &device) return;
  std::shared_ptr<Communicator> useless = std::move(found->second.communicator);
  retired_.erase(found);
  lock.unlock();
  reaper.add(std::move(useless));
}

std::shared_ptr<Communicator> ViewCommunicators::take_retired(const std::string& worker) {
  const MutexLock lock(mutex_);
  newest_[worker].has_begun = true;
  const auto found = retired_.find(worker);
  if (found == retired_.end()) return nullptr;
  std::shared_ptr<Communicator> its = std::move(found->second.communicator);
  retired_.erase(found);
  return its->phase() == Phase::kRetired ? its : nullptr;
}

void ViewCommunicators::end_retired(CommunicatorReaper& reaper) {
  std::map<std::string, Retired> all;
  {
    const MutexLock lock(mutex_);
    all.swap(retired_);
  }
  for (auto& [worker, its] : all) reaper.add(std::move(its.communicator));
}

}  // namespace elastic::collectives::nccl
