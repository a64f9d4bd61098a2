// Context::run: training, and joining again after this worker has left the job.
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/exception_text.hpp"
#include "base/in_callback.hpp"
#include "base/log.hpp"
#include "base/process_mark.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/join_job.hpp"
#include "runtime/join_request.hpp"
#include "runtime/own_run.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_log.hpp"

namespace elastic {

namespace {

/// A worker that has left the job so often, without a finished step in between, gives up.
constexpr int kRejoinsInVain = 5;

}  // namespace

RunOutcome Context::run(State& state, const std::function<void()>& body) {
  const runtime::OwnRun here;
  return impl_->run(state, body);
}

/// An exception may also leave `run` in a forked child, where nothing of this object may be
/// changed.
RunOutcome Context::Impl::run(State& state, const std::function<void()>& body) {
  refuse_in_callback("elastic::run");
  if (running_.exchange(true)) {
    throw Error(ErrorCode::kInvalidArgument,
                "elastic::run was called while another one is under way; a job has one training: "
                "return from the body of the first one before");
  }
  const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> running(
      &running_, [](std::atomic<bool>* flag) { *flag = false; });
  const std::uint64_t process = detail::process_mark();
  try {
    const RunOutcome outcome = train(state, body);
    set_unfinished({});
    return outcome;
  } catch (...) {
    if (process == detail::process_mark())
      set_unfinished("an exception left elastic::run: " + text_of(std::current_exception()));
    throw;
  }
}

void Context::Impl::rejoin() {
  runtime::Identity identity = control().identity();
  if (const auto last = view()) identity.last_generation = last->members->generation;
  runtime::draw_incarnation(identity);
  control().stop();
  become(std::move(identity));
}

RunOutcome Context::Impl::train(State& state, const std::function<void()>& body) {
  const std::function<void()> before_commit = [this] {
    open_steps_->refuse_commit();
    coordinator().flush();
    finish_queued();
    coordinator().drain();
  };
  const std::uint64_t process = detail::process_mark();
  int in_vain = 0;
  for (std::uint64_t commits = 0; in_vain < kRejoinsInVain; commits = state.commits()) {
    try {
      const RunOutcome outcome =
          runtime::run_training(state, body, control(), step_clock(), before_commit, state_layout_);
      detail::require_process(process);  // the body may have forked, and the child returned
      runtime::log_steps(step_clock().times());
      return outcome;
    } catch (const Error& error) {
      const bool is_out = error.code() == ErrorCode::kEvicted ||
                          (error.code() == ErrorCode::kTimeout && control().left_after_timeout());
      if (!is_out || !options().rejoin) throw;
      in_vain = state.commits() > commits ? 0 : in_vain + 1;
      log::warn("joins again: {}", error.what());
      try {
        rejoin();
      } catch (const runtime::MustLeave& leave) {
        log::warn("does not join again: {}", leave.what());
        return leave.outcome == RunOutcome::kStopped ? RunOutcome::kLeftOut : leave.outcome;
      }
    }
  }
  throw Error(ErrorCode::kEvicted, "left the job " + std::to_string(kRejoinsInVain) +
                                       " times without having finished a step in between");
}

}  // namespace elastic
