#include "runtime/training_run.hpp"

#include <utility>

#include "runtime/raise.hpp"
#include "runtime/synchronisation.hpp"
#include "training/boundary.hpp"
#include "training/state_image.hpp"

namespace elastic::runtime {

namespace {

/// The step boundary of a member.
class StepBoundary : public training::Boundary {
 public:
  StepBoundary(Control& control, const std::function<void()>& before_commit)
      : control_(control), before_commit_(before_commit) {}

  void commit(State& state) override {
    before_commit_();
    bool paused = false;
    raise_if(control_.gate().commit(paused));
    // Not by who lacks the state now: a joiner may be gone again, but whoever saw it synchronises.
    if (paused && control_.view()->admitted_at == state.commits()) {
      raise_if(synchronise(state, control_));
    }
  }

 private:
  Control& control_;
  const std::function<void()>& before_commit_;
};

rendezvous::Layout layout_of(const State& state) {
  rendezvous::Layout layout;
  for (const training::LayoutEntry& entry : training::layout(state)) {
    layout.push_back({entry.name, entry.type, entry.count});
  }
  return layout;
}

}  // namespace

RunOutcome run_training(State& state, const std::function<void()>& body, Control& control,
                        const std::function<void()>& before_commit) {
  StepBoundary boundary(control, before_commit);
  const training::Attachment attachment(state, boundary);
  try {
    const std::uint64_t to_receive = control.joining() ? training::image_bytes(state) : 0;
    collectives::Buffer room;
    if (to_receive > 0) room = make_room(to_receive);
    control.send_ready(layout_of(state), to_receive);
    raise_if(control.wait_until_member());
    raise_if(synchronise(state, control, std::move(room)));
    body();
    return RunOutcome::kFinished;
  } catch (const Departure& departure) {
    return departure.outcome;
  }
}

}  // namespace elastic::runtime
