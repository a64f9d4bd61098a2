#include "runtime/training_run.hpp"

#include <string>
#include <utility>

#include "base/log.hpp"
#include "elastic/detail/process_owned.hpp"
#include "runtime/raise.hpp"
#include "runtime/step_comparison.hpp"
#include "runtime/step_log.hpp"
#include "runtime/synchronisation.hpp"
#include "training/boundary.hpp"
#include "training/state_image.hpp"

namespace elastic::runtime {

namespace {

/// How long a worker that the job has gone on without waits for the server to say so.
constexpr Milliseconds kNewsOfEnd{5000};

/// Waits for other workers, which may wait for this one. An exception in `wait`, which is that of
/// an InterruptCheck, makes this worker leave.
template <typename Wait>
Status or_leave(Control& control, const Wait& wait) {
  try {
    return wait();
  } catch (...) {
    (void)control.lane(kUnnamedLane).leave_for(std::current_exception());
    throw;
  }
}

/// The step boundary of a member.
class StepBoundary : public training::Boundary {
 public:
  /// `layout`: hash of the layout that this worker has sent.
  StepBoundary(Control& control, StepClock& clock, const std::function<void()>& before_commit,
               std::uint64_t layout)
      : control_(control), clock_(clock), before_commit_(before_commit), layout_(layout) {}

  void before_commit() override {
    detail::require_process(process_);
    const Blocked blocked;
    before_commit_();
  }

  void commit(State& state) override {
    {
      const Blocked blocked;
      compare(state.commits());
      meet(state);
    }
    clock_.end_step();
    log_step(state.commits(), clock_);
    control_.timeline().record_commit(state.commits());
  }
  std::uint64_t generation() const override {
    // Also called when an exception leaves `run`, perhaps in a forked child, which has no view.
    if (process_ != detail::process_mark()) return 0;
    const auto view = control_.view();
    return view ? view->members->generation : 0;
  }
  void check_membership() override {
    detail::require_process(process_);
    raise_if(control_.check_membership());
  }
  void await_end() override {
    detail::require_process(process_);
    raise_if(control_.wait_until_ended(kNewsOfEnd));
  }

 private:
  /// Called before the boundary: a worker that joins there could not take part.
  void compare(std::uint64_t commit) {
    const auto every = static_cast<std::uint64_t>(control_.options().compare_steps);
    if (every > 0 && commit % every == 0) raise_if(compare_steps(commit, clock_, control_));
  }

  /// Waits for the other members if workers join or leave at this boundary.
  void meet(State& state) {
    bool paused = false;
    raise_if(or_leave(control_, [&] { return control_.gate().commit(paused); }));
    // Decided by the view, and not by which member lacks the state now: a joiner may have left, but
    // every member that saw it synchronises.
    if (paused && control_.view()->admitted_at == state.commits()) {
      const Blocked synchronising(Phase::kViewChange);
      raise_if(
          synchronise(state, {layout_, "is in State::commit, where a worker joins"}, control_));
    }
  }

  Control& control_;
  StepClock& clock_;
  const std::function<void()>& before_commit_;
  const std::uint64_t layout_;
  const std::uint64_t process_ = detail::process_mark();
};

/// The layout of the state and the options that a worker must share with the job.
Layout layout_with_options(const State& state, const Options& options) {
  Layout result{
      option_entry("backend", options.backend),
      option_entry("algorithm", std::string(name_in(kAlgorithms, options.algorithm))),
      option_entry("compare_steps", std::to_string(options.compare_steps)),
      option_entry("non_finite", std::string(name_in(kNonFinites, options.non_finite))),
      option_entry("compression", options.compression),
      option_entry("resize_policy", std::string(name_in(kResizePolicies, options.resize_policy)))};
  const Layout entries = training::layout(state);
  result.insert(result.end(), entries.begin(), entries.end());
  return result;
}

}  // namespace

void StateLayout::compare(const Layout& state) {
  if (!first_) first_ = state;
  const std::string difference = workers_difference(*first_, "the State of an earlier elastic::run",
                                                    state, "the one of this elastic::run");
  if (difference.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              "elastic::run: a job has one state, and this is another one: " + difference);
}

RunOutcome run_training(State& state, const std::function<void()>& body, Control& control,
                        StepClock& clock, const std::function<void()>& before_commit,
                        StateLayout& job) {
  const Layout layout = layout_with_options(state, control.options());
  StepBoundary boundary(control, clock, before_commit, hash_of(layout));
  const training::Attachment attachment(state, boundary);
  try {
    const std::uint64_t to_receive = control.joining() ? training::image_bytes(state) : 0;
    collectives::Buffer room;
    if (to_receive > 0) room = make_room(to_receive);
    job.compare(training::layout(state));
    control.send_ready(layout, to_receive);
    raise_if(or_leave(control, [&] { return control.wait_until_member(); }));
    const char* const doing =
        control.synced() ? "has called elastic::run again" : "has called elastic::run";
    raise_if(synchronise(state, {hash_of(layout), doing}, control, std::move(room)));
    const StepClock::Running running(clock, control.view_changes());
    body();
    return RunOutcome::kFinished;
  } catch (const MustLeave& leave) {
    if (control.joining()) {
      log::warn("did not join the job, and does not have its state: {}", leave.what());
      if (leave.outcome == RunOutcome::kStopped) return RunOutcome::kLeftOut;
    }
    return leave.outcome;
  }
}

}  // namespace elastic::runtime
