#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "collectives/backend/nccl/communicator/bootstrap.hpp"
#include "collectives/backend/nccl/communicator/communicator.hpp"
#include "collectives/backend/nccl/communicator/shared_state.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

/// The state that the threads of a communicator share. Threads that hang in NCCL keep it alive.
class Communicator::Body : public std::enable_shared_from_this<Body> {
 public:
  Body(std::shared_ptr<const NcclLibrary> library, CommunicatorPlan plan)
      : library_(std::move(library)),
        parent_(std::exchange(plan.parent, nullptr)),
        plan_(std::move(plan)),
        bootstrap_(plan_),
        state_(plan_.view, plan_.deadlines) {}

  /// Makes the communicator; runs in the communicator's own thread.
  void prepare();

  Status wait_ready(TimePoint until);
  Status wait_ended(TimePoint until);
  Status perform(const char* name, const std::function<int(const Api&, ncclComm*)>& call,
                 TimePoint until, const std::function<Status()>& meanwhile);
  Status check();
  Phase phase() const;
  const DecidedView& view() const { return plan_.view; }
  bool has_parent() const { return parent() != nullptr; }
  bool retire() noexcept;

  /// Ends the communicator at once, because the view is to change, or because of `why`. A thread in
  /// the background releases its resources.
  void kill() noexcept { kill(aborted_); }
  void kill(const Status& why) noexcept;

 private:
  using NcclCall = std::function<ncclResult_t(const Api&)>;

  using May = Status (CommunicatorState::*)() const;

  /// Waits for the end of other calls, then calls NCCL, if `may` still permits it.
  Decision call(const char* name, const NcclCall& call, May may = &CommunicatorState::may_call,
                TimePoint until = TimePoint::max());
  /// Calls NCCL, after `call_begins`.
  Decision make(const char* name, const NcclCall& call);
  Answer answer(const char* name, ncclResult_t result) const;
  ncclResult_t call_shrink(const Api& api);
  /// The state of NCCL's latest call: of the parent while NCCL shrinks it.
  ncclResult_t ask_nccl(const Api& api);
  /// Asks NCCL for its progress. Decides on another kPoll if a thread is in a call.
  Decision poll(May may = &CommunicatorState::may_call);
  /// Polls until NCCL is done with the call, or the communicator is dead.
  Status poll_until_done(Decision next, TimePoint until,
                         const std::function<Status()>& meanwhile = {});

  Decision make_id();
  Decision meet();
  Decision init();
  Decision shrink();
  Decision release();
  Decision agree();

  Status own_failure() const;

  /// Waits for `done`, at most until `until`, and carries out the state's deadlines meanwhile.
  template <typename Done>
  void wait(TimePoint until, const Done& done) {
    state_.wait(until, done, [this](const Decision& decision) { carry_out(decision); });
  }
  void pause(Duration& length);
  Status ask(May may) const;
  void prepare_step_by_step();
  void carry_out(const Decision& decision) noexcept;
  void choose_device_to_end() const noexcept;
  void give_back() noexcept;
  void end_when_kept_too_long() noexcept;
  /// For a retired one: see CommunicatorState.
  std::optional<TimePoint> borrow();
  void put_back(TimePoint until);
  void end_retired() noexcept;
  ncclResult_t end_communicators() noexcept;
  std::shared_ptr<Communicator> parent() const;
  std::shared_ptr<Communicator> take_parent();
  bool exists() const { return comm_ != nullptr || parent() != nullptr; }
  void say_stuck(const char* why) noexcept;

  const std::shared_ptr<const NcclLibrary> library_;
  mutable Mutex parent_mutex_;
  /// CommunicatorPlan::parent, which is null in `plan_`; null when its end begins.
  std::shared_ptr<Communicator> parent_ ELASTIC_GUARDED_BY(parent_mutex_);
  const CommunicatorPlan plan_;
  ncclComm_t comm_ = nullptr;  // written by the call that makes it, read by later ones
  // Written by NCCL while it shrinks the parent; read after that, or after the parent's abort.
  ncclComm_t shrunk_ = nullptr;

  Bootstrap bootstrap_;  // of the thread that makes the communicator
  SharedState state_;
  const Status aborted_{Code::kAborted, "the view is being changed"};
  const Status late_{Code::kTimeout, "NCCL has not taken up a call in time"};
  std::atomic<bool> dead_{false};  // set before the state, which may fail for lack of memory
};

}  // namespace elastic::collectives::nccl
