#include "collectives/plan/barrier.hpp"

#include "collectives/plan/builder.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::plan {

Plan dissemination_barrier(int rank, int size) {
  Builder build;
  std::int32_t sent = Step::kNone;
  std::int32_t heard = Step::kNone;
  for (int distance = 1; distance < size; distance *= 2) {
    // By way of the send before, this waits for all earlier rounds and not just for the last.
    sent = build.send(around(rank, distance, size), {}, sent, heard);
    heard = build.receive(around(rank, -distance, size), {});
  }
  return build.take();
}

Plan with_barrier(int rank, int size, const Plan& plan) {
  Plan both = dissemination_barrier(rank, size);
  const auto shift = static_cast<std::int32_t>(both.steps.size());
  both.scratch_bytes = plan.scratch_bytes;
  for (Step step : plan.steps) {
    for (std::int32_t& each : step.after) {
      if (each != Step::kNone) each += shift;
    }
    both.steps.push_back(step);
  }
  return both;
}

}  // namespace elastic::plan
