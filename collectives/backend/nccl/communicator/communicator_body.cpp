#include "collectives/backend/nccl/communicator/communicator_body.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <sched.h>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "base/thread_name.hpp"

namespace elastic::collectives::nccl {

namespace {

/// A call that is under way is asked for at once so many times, since NCCL accepts most within some
/// tens of microseconds, and then in pauses, which sleep for longer than they say.
constexpr int kPollsWithoutPause = 100;
constexpr Duration kShortestPause = std::chrono::microseconds(50);
constexpr Duration kLongestPause = std::chrono::milliseconds(5);

/// kPeerLost, which begins a view change, for errors that the loss of a peer may cause. The others,
/// wrong calls and a device that cannot begin, would fail again in every view: kUnavailable.
Code code_of(ncclResult_t result, Phase phase) {
  const bool begun = phase == Phase::kReady;
  switch (result) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return Code::kUnavailable;
    case ncclUnhandledCudaError:
    case ncclInternalError:
      return begun ? Code::kPeerLost : Code::kUnavailable;
    default:
      return Code::kPeerLost;
  }
}

}  // namespace

Phase Communicator::Body::phase() const {
  return state_.ask([](const auto& state) { return state.phase(); });
}

void Communicator::Body::prepare() {
  name_this_thread("elastic-nccl");
  try {
    prepare_step_by_step();
  } catch (const std::exception& error) {
    kill(Status(Code::kInternal, error.what()));
  }
}

void Communicator::Body::prepare_step_by_step() {
  Duration length = kShortestPause;
  const bool offers = parent() != nullptr;
  Decision next =
      state_.decide([&](auto& state, TimePoint now) { return state.begin(now, offers); });
  for (;;) {
    switch (next.action) {
      case Action::kMakeId:
        next = make_id();
        break;
      case Action::kMeet:
        next = meet();
        break;
      case Action::kInit:
        next = init();
        break;
      case Action::kShrink:
        next = shrink();
        break;
      case Action::kRelease:
        next = release();
        break;
      case Action::kPoll:
        pause(length);
        next = poll();
        break;
      case Action::kAgree:
        next = agree();
        break;
      default:
        return carry_out(next);
    }
  }
}

Decision Communicator::Body::make_id() {
  return call("ncclGetUniqueId",
              [this](const Api& api) { return api.get_unique_id(&bootstrap_.id()); });
}

Status Communicator::Body::own_failure() const {
  return state_.ask([](const auto& state) { return state.own_failure(); });
}

Decision Communicator::Body::meet() {
  std::optional<Bootstrap::Offer> offer;
  if (const std::shared_ptr<Communicator> old = parent()) {
    offer = {.view = old->view()};
    const std::optional<TimePoint> until = old->body_->borrow();
    const Decision asked = call("ncclCommGetAsyncError", [&](const Api& api) {
      // NCCL does not shrink one with an error, such as that of a connection to a lost rank.
      ncclResult_t state = ncclSuccess;
      offer->usable = until && api.comm_get_async_error(old->body_->comm_, &state) == ncclSuccess &&
                      state == ncclSuccess;
      return ncclSuccess;
    });
    if (until) old->body_->put_back(*until);
    if (asked.action != Action::kMeet) return asked;  // it is dead
  }
  const Status met = bootstrap_.meet(own_failure(), offer);
  const Making how = bootstrap_.making();
  return state_.decide([&](auto& state, TimePoint now) { return state.met(met, now, how); });
}

Decision Communicator::Body::init() {
  return call("ncclCommInitRankConfig", [this](const Api& api) {
    CommunicatorConfig config = config_for(plan_.tuning, library_->version());
    return api.comm_init_rank_config(&comm_, plan_.view.size, bootstrap_.id(), plan_.view.rank,
                                     reinterpret_cast<ncclConfig_t*>(&config));
  });
}

Decision Communicator::Body::agree() {
  const std::shared_ptr<Communicator> old = parent();
  if (old) old->body_->put_back(Clock::now() + plan_.deadlines.kept);
  const Status agreed = bootstrap_.agree(own_failure());
  Decision next =
      state_.decide([&](auto& state, TimePoint now) { return state.agreed(agreed, now); });
  if (!old) return next;
  if (agreed.ok()) {
    log::info("nccl, generation {}: the communicator is shrunk from that of generation {}",
              plan_.view.generation, old->view().generation);
    (void)take_parent();
    old->abort();
  } else if (next.action == Action::kRelease) {
    log::warn("nccl, generation {}: {}", plan_.view.generation, next.reason);
  }
  return next;
}

Decision Communicator::Body::poll(May may) {
  constexpr const char* kAsyncError = "ncclCommGetAsyncError";
  std::optional<Decision> instead;
  state_.access([&](CommunicatorState& state) {
    if (state.in_call()) {
      instead = {Action::kPoll, "another thread is in a call"};
    } else if (dead_.load(std::memory_order_acquire) || !(state.*may)().ok()) {
      instead = Decision{};
    } else {
      state.call_begins(kAsyncError);
    }
  });
  if (instead) return *std::move(instead);
  return make(kAsyncError, [this](const Api& api) { return ask_nccl(api); });
}

ncclResult_t Communicator::Body::ask_nccl(const Api& api) {
  const std::shared_ptr<Communicator> old = comm_ == nullptr ? parent() : nullptr;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = api.comm_get_async_error(old ? old->body_->comm_ : comm_, &state);
  if (asked != ncclSuccess) return asked;
  if (state == ncclSuccess && old) {
    if (shrunk_ == nullptr) return ncclInternalError;
    comm_ = std::exchange(shrunk_, nullptr);
  }
  return state;
}

Decision Communicator::Body::call(const char* name, const NcclCall& call, May may,
                                  TimePoint until) {
  bool begun = false;
  wait(until, [&](CommunicatorState& state) {
    if (dead_.load(std::memory_order_acquire) || !(state.*may)().ok()) return true;
    begun = !state.busy();
    if (begun) state.call_begins(name);
    return begun;
  });
  return begun ? make(name, call) : Decision{};
}

Decision Communicator::Body::make(const char* name, const NcclCall& call) {
  Answer ended;
  try {
    const Status device = plan_.choose_device ? plan_.choose_device() : Status();
    ended = device.ok() ? answer(name, call(library_->api()))
                        : Answer{Answer::Progress::kFailed, device, exists()};
  } catch (const std::exception& error) {  // thrown by choose_device or by the caller's function
    ended = {Answer::Progress::kFailed, Status(Code::kInternal, error.what()), exists()};
  }
  return state_.decide([&](auto& state, TimePoint now) { return state.call_returned(ended, now); });
}

/// Called by the thread that made the call of NCCL.
Answer Communicator::Body::answer(const char* name, ncclResult_t result) const {
  Answer answer;
  answer.exists = exists();
  if (result == ncclSuccess) return answer;
  if (result == ncclInProgress) {
    answer.progress = Answer::Progress::kUnderWay;
    return answer;
  }
  const Api& api = library_->api();
  const char* const more = api.get_last_error(comm_);
  answer.progress = Answer::Progress::kFailed;
  answer.failure = Status(code_of(result, phase()),
                          std::string(name) + ": " + api.get_error_string(result) +
                              (more != nullptr && *more != '\0' ? std::string(": ") + more : ""),
                          -1, plan_.view.generation);
  return answer;
}

void Communicator::Body::pause(Duration& length) {
  wait(Clock::now() + length, [](const CommunicatorState& state) { return state.dead(); });
  length = std::min(2 * length, kLongestPause);
}

Status Communicator::Body::wait_ready(TimePoint until) {
  Status why(Code::kTimeout, "the communicator of generation " +
                                 std::to_string(plan_.view.generation) + " is not ready yet");
  wait(until, [&](const CommunicatorState& state) {
    if (state.phase() == Phase::kReady) why = {};
    if (state.dead()) why = state.failure().ok() ? state.may_call() : state.failure();
    return state.phase() == Phase::kReady || state.dead();
  });
  return why;
}

Status Communicator::Body::wait_ended(TimePoint until) {
  Status verdict(Code::kTimeout, "NCCL has not given the communicator of generation " +
                                     std::to_string(plan_.view.generation) + " back yet");
  wait(until, [&](const CommunicatorState& state) {
    if (state.over()) verdict = state.verdict();
    return state.over();
  });
  return verdict;
}

Status Communicator::Body::perform(const char* name,
                                   const std::function<int(const Api&, ncclComm*)>& call,
                                   TimePoint until, const std::function<Status()>& meanwhile) {
  bool begun = false;
  const Decision first = this->call(
      name,
      [&](const Api& api) {
        begun = true;
        return static_cast<ncclResult_t>(call(api, comm_));
      },
      &CommunicatorState::may_use, until);
  if (!begun) {
    if (Status may = ask(&CommunicatorState::may_use); !may.ok()) return may;
    kill(late_);
  }
  return poll_until_done(first, until, meanwhile);
}

Status Communicator::Body::check() {
  const Decision asked = poll(&CommunicatorState::may_use);
  // kPoll belongs to an earlier call, whose caller waits for its end.
  if (asked.action != Action::kPoll) carry_out(asked);
  return ask(&CommunicatorState::may_use);
}

Status Communicator::Body::ask(May may) const {
  return state_.ask([&](const auto& state) { return (state.*may)(); });
}

Status Communicator::Body::poll_until_done(Decision next, TimePoint until,
                                           const std::function<Status()>& meanwhile) {
  Duration length = kShortestPause;
  for (int polls = 0; next.action == Action::kPoll; ++polls) {
    if (const Status outside = meanwhile ? meanwhile() : Status(); !outside.ok()) {
      kill(outside);
      return ask(&CommunicatorState::may_call);
    }
    if (Clock::now() >= until) {
      kill(late_);
      return ask(&CommunicatorState::may_call);
    }
    if (polls < kPollsWithoutPause) {
      ::sched_yield();
    } else {
      pause(length);
    }
    next = poll();
  }
  carry_out(next);
  return ask(&CommunicatorState::may_call);
}

void Communicator::Body::kill(const Status& why) noexcept {
  dead_.store(true, std::memory_order_release);
  Decision decision;
  try {
    state_.decide([&](auto& state, TimePoint now) { return decision = state.die(why, now); });
  } catch (const std::exception&) {
    // No call begins any more. Waiting threads learn of the end by their deadlines at the latest.
    return carry_out(decision);
  }
  carry_out(decision);
}

void Communicator::Body::carry_out(const Decision& decision) noexcept {
  try {
    if (decision.call_off && plan_.exchange.call_off) plan_.exchange.call_off();
    if (decision.action != Action::kAbort) return;
    std::thread([self = shared_from_this()] {
      name_this_thread("elastic-nccl-end");
      self->give_back();
    }).detach();
  } catch (const std::exception& error) {
    say_stuck(error.what());
  }
}

void Communicator::Body::say_stuck(const char* why) noexcept {
  try {
    state_.decide([&](auto& state, TimePoint) {
      return state.not_given_back(std::string("no thread to give a communicator back: ") + why);
    });
  } catch (const std::exception&) {
    return;  // waiting threads return at their deadlines
  }
}

/// Otherwise NCCL makes a context on device 0, which costs hundreds of megabytes of its memory. A
/// device that cannot be chosen is no reason to keep the communicator.
void Communicator::Body::choose_device_to_end() const noexcept {
  try {
    if (plan_.choose_device) (void)plan_.choose_device();
  } catch (const std::exception& error) {
    log::debug("nccl, generation {}: {}", plan_.view.generation, error.what());
  }
}

/// Releases the communicator in NCCL. No other call of NCCL for it is under way, or follows.
void Communicator::Body::give_back() noexcept {
  const ncclResult_t result = end_communicators();
  try {
    state_.decide([](auto& state, TimePoint now) { return state.given_back(now); });
    if (result != ncclSuccess) {
      log::warn("nccl, generation {}: giving the communicator back: {}", plan_.view.generation,
                library_->api().get_error_string(result));
    }
  } catch (const std::exception&) {
    return;  // waiting threads return at their deadlines
  }
}

}  // namespace elastic::collectives::nccl
