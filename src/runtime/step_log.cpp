#include "runtime/step_log.hpp"

#include <chrono>
#include <string>

#include <fmt/format.h>

#include "base/log.hpp"

namespace elastic::runtime {
namespace {

double milliseconds(StepTime::Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string text(const StepTime& time) {
  return fmt::format("data {:.3f}, compute {:.3f}, communication {:.3f}, view change {:.3f} ms",
                     milliseconds(time.data), milliseconds(time.compute),
                     milliseconds(time.communication), milliseconds(time.view_change));
}

}  // namespace

void log_step(std::uint64_t commit, const StepClock& clock) {
  if (!log::shows(log::Level::kDebug)) return;
  log::debug("step {}: {}", commit, text(clock.times().latest));
}

void log_slowest(const StepTimes& times) {
  StepTime::Duration sum{0};
  for (const StepTime& time : times.by_rank) sum += time.own();
  const StepTime& slowest = times.by_rank[static_cast<std::size_t>(times.slowest)];
  log::info("step {}: rank {} was the slowest with {:.3f} ms of its own; mean {:.3f} ms; {}",
            times.compared_commit, times.slowest, milliseconds(slowest.own()),
            milliseconds(sum) / static_cast<double>(times.by_rank.size()), text(slowest));
}

void log_steps(const StepTimes& times) {
  if (times.steps == 0) return;
  log::info("{} steps in {:.3f} s: {}", times.steps, milliseconds(times.sum.total()) / 1000,
            text(times.sum));
}

}  // namespace elastic::runtime
