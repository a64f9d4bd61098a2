#include "elastic/work.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "base/exception_text.hpp"
#include "base/in_callback.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "coordinator/work_state.hpp"
#include "elastic/detail/process_owned.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_clock.hpp"

namespace elastic {

namespace {

detail::WorkState& checked(const std::shared_ptr<detail::WorkState>& state) {
  if (!state) throw Error(ErrorCode::kInvalidArgument, "this Work refers to no operation");
  detail::require_process(state->process());
  return *state;
}

/// The first of several operations that is complete.
class FirstComplete {
 public:
  void is(std::size_t index) {
    {
      const MutexLock lock(mutex_);
      index_ = std::min(index_, index);
    }
    changed_.notify_all();
  }
  std::size_t wait() {
    MutexLock lock(mutex_);
    changed_.wait_interruptibly(lock, [&]() ELASTIC_REQUIRES(mutex_) { return index_ != kNone; });
    return index_;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  Mutex mutex_;
  ConditionVariable changed_;
  std::size_t index_ ELASTIC_GUARDED_BY(mutex_) = kNone;
};

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

Contributors Work::wait(CudaStream stream) const {
  const detail::WorkState& state = checked(state_);
  if (!state.ready()) refuse_in_callback("Work::wait");
  {
    const runtime::Blocked blocked;
    state.wait_for_all_ranks();
  }
  Contributors contributors = runtime::value_or_throw(state.outcome_of_all_ranks());
  runtime::raise_if(state.put_behind(stream));
  return contributors;
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
  const detail::WorkState& state = checked(state_);
  if (state.ready()) return runtime::value_or_throw(state.outcome());
  if (!state.all_ranks_have_it()) {
    throw Error(ErrorCode::kInvalidArgument, "this operation is not complete: call wait() first");
  }
  return runtime::value_or_throw(state.outcome_of_all_ranks());
}

void Work::then(std::function<void(const Work&)> continuation) const {
  detail::WorkState& state = checked(state_);
  if (!continuation) {
    throw Error(ErrorCode::kInvalidArgument, "Work::then: there is no function to call");
  }
  state.when_complete([work = *this, then = std::move(continuation)] {
    const InCallback callback("the function given to Work::then");
    try {
      then(work);
    } catch (...) {
      log::error("the function given to Work::then has thrown: {}",
                 text_of(std::current_exception()));
    }
  });
}

void wait_all(std::span<const Work> works) {
  std::exception_ptr first;
  for (const Work& work : works) {
    try {
      work.wait();
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::size_t wait_any(std::span<const Work> works) {
  if (works.empty()) throw Error(ErrorCode::kInvalidArgument, "wait_any: there is no operation");
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (checked(works[i].state_).ready()) return i;
  }
  refuse_in_callback("wait_any");
  const runtime::Blocked blocked;
  const auto first = std::make_shared<FirstComplete>();
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < works.size(); ++i) {
    numbers.push_back(works[i].state_->when_complete([first, i] { first->is(i); }));
  }
  const std::size_t index = first->wait();
  for (std::size_t i = 0; i < works.size(); ++i) works[i].state_->forget(numbers[i]);
  return index;
}

}  // namespace elastic
