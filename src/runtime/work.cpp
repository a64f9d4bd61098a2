#include <algorithm>
#include <chrono>

#include "base/in_callback.hpp"
#include "coordinator/work_state.hpp"
#include "elastic/detail/process_owned.hpp"
#include "elastic/results.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_clock.hpp"

namespace elastic {

namespace {
const detail::WorkState& checked(const std::shared_ptr<detail::WorkState>& state) {
  if (!state) throw Error(ErrorCode::kInvalidArgument, "this Work refers to no operation");
  detail::require_process(state->process());
  return *state;
}
}  // namespace

Work::Work(std::shared_ptr<detail::WorkState> state) : state_(std::move(state)) {}

Contributors Work::wait() const {
  const detail::WorkState& state = checked(state_);
  if (!state.ready()) refuse_in_callback("Work::wait");
  {
    const runtime::Blocked blocked;
    state.wait();
  }
  return runtime::value_or_throw(state_->outcome());
}

bool Work::wait_for(std::chrono::nanoseconds timeout) const {
  constexpr std::chrono::hours kLongest(24 * 365);  // the sum has to stay a time
  return wait_until(std::chrono::steady_clock::now() +
                    std::min<std::chrono::nanoseconds>(timeout, kLongest));
}

bool Work::wait_until(std::chrono::steady_clock::time_point deadline) const {
  const detail::WorkState& state = checked(state_);
  if (!state.ready()) refuse_in_callback("Work::wait_until");
  {
    const runtime::Blocked blocked;
    if (!state.wait_until(deadline)) return false;
  }
  (void)runtime::value_or_throw(state_->outcome());
  return true;
}

bool Work::ready() const noexcept {
  return state_ && state_->process() == detail::process_mark() && state_->ready();
}

Contributors Work::contributors() const {
  if (!checked(state_).ready()) {
    throw Error(ErrorCode::kInvalidArgument, "this operation is not complete: call wait() first");
  }
  return runtime::value_or_throw(state_->outcome());
}

}  // namespace elastic
