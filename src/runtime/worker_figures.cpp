#include "runtime/worker_figures.hpp"

#include <chrono>
#include <cmath>

namespace elastic::runtime {
namespace {

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

/// JSON has no number that is not finite.
double finite_or_none(double value) {
  return std::isfinite(value) ? value : 0;
}

}  // namespace

rendezvous::WorkerFigures worker_figures(Duration since_begin, const StepTimes& steps,
                                         const std::deque<ViewChange>& changes,
                                         const transport::LinkTraffic& traffic,
                                         const TrainingFigures& training) {
  rendezvous::WorkerFigures figures;
  figures.at_s = seconds(since_begin);
  figures.steps = steps.steps;
  figures.data_s = seconds(steps.sum.data);
  figures.compute_s = seconds(steps.sum.compute);
  figures.communication_s = seconds(steps.sum.communication);
  figures.view_change_s = seconds(steps.sum.view_change);
  figures.shm_bytes = traffic.shm;
  figures.tcp_bytes = traffic.tcp;
  figures.gradient_bytes = training.gradient_bytes.load(std::memory_order_relaxed);
  figures.encoded_bytes = training.encoded_bytes.load(std::memory_order_relaxed);
  figures.ramp_gamma = finite_or_none(training.ramp_gamma.load(std::memory_order_relaxed));
  figures.ramp_target = finite_or_none(training.ramp_target.load(std::memory_order_relaxed));
  for (const ViewChange& change : changes) {
    figures.changes.push_back({change.generation, seconds(change.resumed - change.noticed)});
  }
  return figures;
}

}  // namespace elastic::runtime
