#include "coordinator/lane.hpp"

#include <exception>
#include <new>
#include <utility>

#include "base/counted.hpp"
#include "base/interrupt.hpp"
#include "base/thread_name.hpp"

namespace elastic::coordinator {

Lane::Ownership& Lane::Ownership::operator=(Ownership&& other) noexcept {
  if (this != &other) {
    release();
    lane_ = std::exchange(other.lane_, nullptr);
    view_ = std::move(other.view_);
  }
  return *this;
}

void Lane::Ownership::release() {
  if (lane_ != nullptr && view_) lane_->end_early(*view_);
  view_.reset();
  if (lane_ != nullptr) std::exchange(lane_, nullptr)->release();
}

Lane::Lane(std::string name, Callbacks callbacks, std::shared_ptr<collectives::SpareBuffer> spare,
           timeline::Timeline* timeline, std::size_t number)
    : name_(std::move(name)),
      callbacks_(std::move(callbacks)),
      spare_(std::move(spare)),
      trace_(timeline, number) {}

Lane::~Lane() {
  close(Status(Code::kNotInitialized, "the context is gone"));
  if (repair_thread_.joinable()) repair_thread_.join();
}

bool Lane::available() const {
  return view_ && !frozen_ && !owned_ && !ledger_.is_spoiled();
}

Lane::Turn Lane::take_turn() {
  Turn turn(order_mutex_, std::try_to_lock);
  while (!turn.owns_lock() && has_interrupt_check()) {
    if (!turn.try_lock_for(kInterruptCheckEvery)) check_interrupt();
  }
  if (!turn.owns_lock()) turn.lock();
  return turn;
}

Result<Lane::Ownership> Lane::acquire(Milliseconds view_timeout) {
  MutexLock lock(mutex_);
  if (!available() && closed_.ok()) {
    const Counted waiting(waiting_);
    const bool in_time = changed_.wait_interruptibly_until(
        lock, Clock::now() + view_timeout,
        [&]() ELASTIC_REQUIRES(mutex_) { return !closed_.ok() || available(); });
    if (!in_time) {
      return Status(Code::kTimeout,
                    "no new view within " + std::to_string(view_timeout.count()) +
                        " ms: is the rendezvous server up? (ELASTIC_VIEW_TIMEOUT_MS)",
                    -1, view_ ? view_->generation() : 0);
    }
  }
  if (!closed_.ok()) return closed_;
  owned_ = true;
  return Ownership(this, view_);
}

void Lane::release() {
  MutexLock lock(mutex_);
  owned_ = false;
  if (!closed_.ok()) view_.reset();
  const bool quiesced = frozen_;
  const std::uint64_t position = ledger_.position();
  const std::string needs = ledger_.needs();
  const bool awaited = waiting_ > 0 || !closed_.ok();
  lock.unlock();
  if (awaited) changed_.notify_all();
  if (quiesced) callbacks_.on_quiesced(position, needs);
}

Status Lane::wait(Ownership& ownership, int wake_fd) {
  return ownership.view().mesh->wait(wake_fd);
}

void Lane::suspect(const Ownership& ownership, const Status& failure) {
  (void)interrupted(ownership.view(), failure);
}

void Lane::freeze() {
  MutexLock lock(mutex_);
  frozen_ = true;
  if (owned_) {
    view_->backend->abort();
    view_->mesh->abort();
    return;
  }
  const std::uint64_t position = ledger_.position();
  const std::string needs = ledger_.needs();
  lock.unlock();
  callbacks_.on_quiesced(position, needs);
}

void Lane::begin_at(std::uint64_t position) {
  const MutexLock lock(mutex_);
  ledger_.begin_at(position);
}

void Lane::install(std::shared_ptr<LaneView> view) {
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return;  // closed permanently, and the view's links are not to be kept
    if (const Status entered = ledger_.enter(view->orders()); !entered.ok()) {
      lock.unlock();
      (void)leave(entered.within(name_));
      return;
    }
    repair_wanted_ = ledger_.has_to_hand_over() && waiting_ == 0;
    if (repair_wanted_ && !repair_thread_.joinable()) {
      repair_thread_ = std::thread([this] { repair_when_idle(); });
    }
    view_ = std::move(view);
    frozen_ = false;
    resumed_ = false;
  }
  changed_.notify_all();
}

/// The repair thread: hands over the result that other members wait for, while this worker's
/// program is busy elsewhere.
void Lane::repair_when_idle() {
  name_this_thread("elastic-repair");
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() ELASTIC_REQUIRES(mutex_) { return repair_wanted_ || !closed_.ok(); });
    if (!closed_.ok()) return;
    repair_wanted_ = false;
    lock.unlock();
    {
      Result<Ownership> ownership = acquire(Milliseconds(0));
      try {
        if (ownership.ok()) (void)resume(ownership.value(), nullptr);
      } catch (...) {
        return;  // this worker has left
      }
    }
    lock.lock();
  }
}

void Lane::close(const Status& reason) {
  {
    const MutexLock lock(mutex_);
    if (closed_.ok()) closed_ = reason;
    if (owned_ && view_) {
      view_->backend->abort();
      view_->mesh->abort();
    } else {
      view_.reset();  // and the links with it
    }
  }
  changed_.notify_all();
}

Status Lane::leave_for(const std::exception_ptr& exception) noexcept {
  std::string what = "an exception";
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    what = "lack of memory";
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    // An exception of another type has no text.
  }
  return leave(
      Status(Code::kInternal, "this worker has left the job, as a collective ended here with " +
                                  what + "; end it, and it can join again"));
}

Status Lane::leave(const Status& why) {
  close(why);
  {
    const MutexLock lock(mutex_);
    if (std::exchange(left_, true)) return why;
  }
  if (callbacks_.on_leave) callbacks_.on_leave(why);
  return why;
}

Status Lane::leave_after(const Status& timeout) {
  return leave(timeout.within(
      "this worker has left the job, because no view came in which to complete what it had begun"));
}

/// No view came for the present call. If the call had begun, its outcome on other ranks is unknown,
/// so the next call must not take its place: this worker leaves.
Status Lane::give_up(const Status& failure) {
  {
    const MutexLock lock(mutex_);
    if (!closed_.ok()) return closed_;
    if (failure.code() != Code::kTimeout || !ledger_.is_open()) return failure;
  }
  return leave_after(failure);
}

Status Lane::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

std::optional<std::string> Lane::call_under_way() const {
  const MutexLock lock(mutex_);
  if (!ledger_.is_open()) return std::string();
  if (transport::waits_for_state(begun_call_.kind)) return std::nullopt;
  return transport::describe_kind(begun_call_);
}

std::uint64_t Lane::position() const {
  const MutexLock lock(mutex_);
  return ledger_.position();
}

}  // namespace elastic::coordinator
