// The part of a communicator that concerns its parent, from which NCCL shrinks it.
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_name.hpp"
#include "collectives/backend/nccl/communicator/communicator_body.hpp"

namespace elastic::collectives::nccl {

namespace {

/// NCCL_SHRINK_ABORT: ends what is under way on the parent, which is nothing. Only with it is the
/// parent's end sure not to be the shrunk one's: otherwise NCCL_COMM_SHRINK_SHARE_RESOURCES can
/// make both share their abort flags.
constexpr int kShrinkAbort = 1;

}  // namespace

Decision Communicator::Body::shrink() {
  return call("ncclCommShrink", [this](const Api& api) { return call_shrink(api); });
}

/// NCCL begins a thread and returns ncclSuccess, also of communicators that do not block. It says
/// of the parent how far it is, and hands out the new one at the end.
ncclResult_t Communicator::Body::call_shrink(const Api& api) {
  CommunicatorConfig config = config_for(plan_.tuning, library_->version());
  std::vector<int> excluded = bootstrap_.excluded();
  const std::shared_ptr<Communicator> old = parent();
  if (!old->body_->borrow()) throw std::runtime_error("the old one was kept for too long");
  const ncclResult_t begun =
      api.comm_shrink(old->body_->comm_, excluded.data(), static_cast<int>(excluded.size()),
                      &shrunk_, reinterpret_cast<ncclConfig_t*>(&config), kShrinkAbort);
  return begun == ncclSuccess ? ncclInProgress : begun;
}

/// So that NCCL can make the communicator anew.
Decision Communicator::Body::release() {
  return call("ncclCommAbort", [this](const Api&) {
    (void)end_communicators();
    comm_ = nullptr;
    return ncclSuccess;
  });
}

bool Communicator::Body::retire() noexcept {
  bool retired = false;
  try {
    state_.decide([&](auto& state, TimePoint now) {
      retired = state.retire(now);
      return Decision{Action::kNothing, "its view has ended"};
    });
    if (!retired) return false;
    std::thread([self = shared_from_this()] { self->end_when_kept_too_long(); }).detach();
    return true;
  } catch (const std::exception&) {  // there is no thread to watch the time
    if (retired) kill();
    return false;
  }
}

/// No other thread may look at a retired communicator for long.
void Communicator::Body::end_when_kept_too_long() noexcept {
  try {
    name_this_thread("elastic-nccl-end");
    wait(TimePoint::max(),
         [](const CommunicatorState& state) { return state.phase() != Phase::kRetired; });
  } catch (const std::exception&) {
    kill();
  }
}

std::optional<TimePoint> Communicator::Body::borrow() {
  std::optional<TimePoint> until;
  state_.access([&](CommunicatorState& state) { until = state.borrow(); });
  return until;
}

void Communicator::Body::put_back(TimePoint until) {
  state_.decide([&](auto& state, TimePoint) {
    state.put_back(until);
    return Decision{};
  });
}

std::shared_ptr<Communicator> Communicator::Body::parent() const {
  const MutexLock lock(parent_mutex_);
  return parent_;
}

std::shared_ptr<Communicator> Communicator::Body::take_parent() {
  const MutexLock lock(parent_mutex_);
  return std::exchange(parent_, nullptr);
}

/// For a retired communicator: ends it, unless it ends already, and waits for NCCL.
void Communicator::Body::end_retired() noexcept {
  try {
    const Decision decision =
        state_.decide([&](auto& state, TimePoint now) { return state.die(aborted_, now); });
    if (decision.action == Action::kAbort) return give_back();
    (void)wait_ended(Clock::now() + plan_.deadlines.abort);
  } catch (const std::exception&) {
    return;  // as `kill`
  }
}

/// Ends the parent and what came of shrinking it. The parent comes first: its abort also ends the
/// thread of NCCL that shrinks it, and until that has succeeded, the parent refers to flags of the
/// new communicator (childAbortFlag in init.cc of NCCL).
ncclResult_t Communicator::Body::end_communicators() noexcept {
  choose_device_to_end();
  if (const std::shared_ptr<Communicator> old = take_parent()) old->body_->end_retired();
  ncclComm_t const shrunk = std::exchange(shrunk_, nullptr);
  ncclComm_t const made = comm_;
  if (ncclComm_t const its = made != nullptr ? made : shrunk; its != nullptr) {
    return library_->api().comm_abort(its);
  }
  return ncclSuccess;
}

}  // namespace elastic::collectives::nccl
