#include "collectives/backend/nccl/communicator/view_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.hpp"
#include "collectives/backend/nccl/communicator/communicator_reaper.hpp"
#include "collectives/backend/nccl/communicator/view_communicators.hpp"

namespace elastic::collectives::nccl {

namespace {

constexpr Duration kMoment = std::chrono::milliseconds(1);
/// Between two looks at the device, while NCCL ends its work there.
constexpr Duration kLook = std::chrono::microseconds(100);
/// Limit for this rank to find the error that other ranks have found in the same messages.
constexpr Duration kVerdict = std::chrono::seconds(2);

bool is_dead(Phase phase) {
  return phase == Phase::kRetired || phase == Phase::kDying || phase == Phase::kAborting ||
         phase == Phase::kEnded || phase == Phase::kStuck;
}

/// Whether NCCL has released it, which is waited for until `until`. The error: it never will.
Result<bool> is_released(Communicator& communicator, TimePoint until) {
  const Status ended = communicator.ended(until);
  if (ended.code() == Code::kTimeout) return false;
  return ended.ok() ? Result<bool>(true) : Result<bool>(ended.within("NCCL"));
}

/// The reason of its death; kTimeout if it is not dead.
Status failure_of(Communicator& communicator) {
  return communicator.ready(Clock::now());
}

/// Added to NCCL's own error, which says at most that a GPU is used twice. Losses have other
/// causes.
std::string mig_remedy(const SharedDevice* device, Code failure) {
  if (device == nullptr || failure == Code::kPeerLost || !device->cuda()->is_mig_instance()) {
    return "";
  }
  return ". This rank's device is a MIG instance (" + device->cuda()->name() +
         "), and NCCL refuses two ranks on instances of one GPU: give each rank a GPU of its own, "
         "or take another backend (ELASTIC_BACKEND=native)";
}

}  // namespace

ViewCommunicator::ViewCommunicator(std::string worker, DecidedView view, NcclServices services)
    : worker_(std::move(worker)), view_(view), services_(std::move(services)) {}

ViewCommunicator::~ViewCommunicator() {
  const MutexLock lock(mutex_);
  if (!retire() && communicator_) services_.reaper->add(std::move(communicator_));
}

std::pair<std::shared_ptr<Communicator>, std::shared_ptr<BootstrapExchange>>
ViewCommunicator::communicator_and_exchange() const {
  const MutexLock lock(mutex_);
  return {communicator_, exchange_};
}

ViewCommunicator::Standing ViewCommunicator::standing() const {
  const auto [communicator, exchange] = communicator_and_exchange();
  Standing standing;
  if (communicator) {
    const Phase phase = communicator->phase();
    standing.communicator = communicator;
    standing.ready = phase == Phase::kReady;
    standing.alive = !is_dead(phase);
    standing.distinct_devices =
        standing.alive || failure_of(*communicator).code() != Code::kMismatch;
    standing.message = exchange->waiting();
    standing.rounds = exchange->rounds();
  }
  const MutexLock lock(mutex_);
  if (off_) standing.alive = standing.ready = false;
  return standing;
}

ViewCommunicator::Fit ViewCommunicator::fit(const SharedDevice& device) const {
  const MutexLock lock(mutex_);
  if (!device_ || device_.get() == &device) return Fit::kFits;
  return guessed_ ? Fit::kGuessedWrong : Fit::kOther;
}

void ViewCommunicator::use() {
  const MutexLock lock(mutex_);
  guessed_ = false;
}

bool ViewCommunicator::can_begin(const SharedDevice& device) const {
  {
    const MutexLock lock(mutex_);
    if (communicator_ || off_) return true;
  }
  services_.communicators->end_retired_elsewhere(worker_, device, *services_.reaper);
  const Result<bool> over = services_.reaper->over();
  return !over.ok() || over.value();  // `begin` says what is wrong
}

Status ViewCommunicator::begin(std::shared_ptr<SharedDevice> device, Device how) {
  services_.communicators->end_retired_elsewhere(worker_, *device, *services_.reaper);
  Result<bool> over = services_.reaper->over();
  if (!over.ok() || !over.value()) return over.status();
  const MutexLock lock(mutex_);
  if (communicator_ || off_) return {};
  std::shared_ptr<Communicator> parent = services_.communicators->take_retired(worker_);
  if (!parent) over = services_.reaper->over();  // it may just have been kept for too long
  if (!over.ok() || !over.value()) return over.status();
  auto exchange = std::make_shared<BootstrapExchange>();
  CommunicatorPlan plan;
  plan.view = view_;
  plan.exchange = exchange_by(exchange);
  plan.deadlines = services_.deadlines;
  // The function keeps the device, and so the memory registered with the communicator, alive.
  plan.choose_device = [device] { return device->cuda()->select(); };
  if (const std::string id = device->cuda()->id(); services_.host && !id.empty()) {
    plan.place = *services_.host + "/" + id;
  }
  plan.tuning = services_.tuning;
  plan.parent = std::move(parent);
  communicator_ = Communicator::prepare(services_.library, std::move(plan));
  exchange_ = std::move(exchange);
  device_ = std::move(device);
  guessed_ = how == Device::kGuessed;
  if (aborted_) communicator_->abort();
  return {};
}

void ViewCommunicator::begin_anew() {
  std::shared_ptr<Communicator> dropped;
  {
    const MutexLock lock(mutex_);
    dropped = std::exchange(communicator_, nullptr);
    device_.reset();
    off_ = false;  // the failure was due to the wrong device
    anew_ = true;
  }
  if (dropped) services_.reaper->add(std::move(dropped));
}

void ViewCommunicator::drop_with_parent() {
  std::shared_ptr<Communicator> dropped;
  {
    const MutexLock lock(mutex_);
    if (!communicator_ || !communicator_->has_parent()) return;
    dropped = std::exchange(communicator_, nullptr);
    device_.reset();
  }
  services_.reaper->add(std::move(dropped));
}

void ViewCommunicator::deliver(std::uint8_t round, std::vector<std::string> messages) {
  if (const auto exchange = communicator_and_exchange().second)
    exchange->deliver(round, std::move(messages));
}

Result<bool> ViewCommunicator::wait_for_news() {
  const auto [communicator, exchange] = communicator_and_exchange();
  if (!communicator) {
    if (Result<bool> over = services_.reaper->over(); !over.ok() || over.value()) return over;
    std::this_thread::sleep_for(kMoment);
    return false;
  }
  const auto has_news = [&, &its = *communicator, &its_exchange = *exchange] {
    return its.phase() == Phase::kReady || is_dead(its.phase()) ||
           its_exchange.waiting().has_value();
  };
  if (has_news()) return true;
  // `ready` returns early if it can, and carries out deadlines that pass meanwhile.
  (void)communicator->ready(Clock::now() + kMoment);
  return has_news();
}

Status ViewCommunicator::give_up(const Status& why) {
  MutexLock lock(mutex_);
  const bool first = !std::exchange(off_, true);
  const std::shared_ptr<Communicator> communicator = communicator_;
  const std::shared_ptr<SharedDevice> device = device_;
  lock.unlock();
  if (!communicator) return {};
  const Status failure = why.ok() ? failure_of(*communicator) : why;
  // No warning for kMismatch: the calls themselves report two ranks on one device.
  if (first && failure.code() != Code::kAborted && failure.code() != Code::kMismatch) {
    log::warn(
        "nccl, generation {}: NCCL cannot be used; tensors on devices go through host memory until "
        "the workers change: {}{}",
        view_.generation, failure.message(), mig_remedy(device.get(), failure.code()));
  }
  communicator->abort();
  return is_released(*communicator, Clock::now()).status();
}

Status ViewCommunicator::wait_until_unused(const std::function<bool()>& is_unused) {
  const auto communicator = communicator_and_exchange().first;
  while (communicator && !is_unused()) {
    const Result<bool> released = is_released(*communicator, Clock::now() + kLook);
    if (!released.ok() || released.value()) return released.status();
  }
  return {};
}

Status ViewCommunicator::shared_device_error() const {
  const auto communicator = communicator_and_exchange().first;
  if (communicator) {
    Status why = communicator->ready(Clock::now() + kVerdict);
    if (why.code() == Code::kMismatch) return why;
  }
  return Status(Code::kMismatch, "two ranks are on one CUDA device");
}

void ViewCommunicator::abort() noexcept {
  const MutexLock lock(mutex_);
  aborted_ = true;
  if (!retire() && communicator_) services_.reaper->add(communicator_);
}

void ViewCommunicator::count_use(int change) {
  const MutexLock lock(mutex_);
  uses_ += change;
}

/// A communicator that was begun again in its view would not be told from the one before it.
bool ViewCommunicator::retire() {
  if (!services_.shrinks || !communicator_ || uses_ > 0 || anew_ || off_) return false;
  if (!communicator_->retire()) return false;
  off_ = true;  // this view begins no other
  services_.communicators->retire(worker_, std::exchange(communicator_, nullptr), *device_,
                                  *services_.reaper);
  return true;
}

}  // namespace elastic::collectives::nccl
