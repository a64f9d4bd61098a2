#include "benchmarks/steps/step_probe.hpp"

#include <span>

#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/monotonic_time.hpp"

namespace elastic::bench {

Status StepProbe::time(StepKind kind, int warmup, int steps, StepTimes& times) {
  gradients_.fill();
  for (int i = 0; i < warmup; ++i) {
    if (auto time = gradients_.step(context_, kind, compute_); !time.ok()) return time.status();
  }
  std::vector<double> own_us;  // first and last of each step
  for (int i = 0; i < steps; ++i) {
    // The barrier keeps the lateness of another rank out of the step's time.
    Status status = check_complete(context_.barrier(), context_.size());
    if (!status.ok()) return status;
    auto time = gradients_.step(context_, kind, compute_);
    if (!time.ok()) return time.status();
    own_us.insert(own_us.end(), {time.value().first_us, time.value().last_us});
  }
  const auto contributors = context_.allreduce(std::span(own_us), ReduceOp::kAverage);
  for (std::size_t i = 0; i < own_us.size(); i += 2) {
    times.first_us.push_back(own_us[i]);
    times.last_us.push_back(own_us[i + 1]);
  }
  return check_complete(contributors, context_.size());
}

Status StepProbe::time_agreement(int calls, std::vector<double>& own_us) {
  float value = 0;
  for (int i = 0; i <= calls; ++i) {
    Status status = check_complete(context_.barrier(), context_.size());
    if (!status.ok()) return status;
    const std::int64_t start = now_ns();
    const Work work = context_.allreduce_async("agreement", std::span(&value, 1));
    status = check_complete(work.wait(), context_.size());
    if (!status.ok()) return status;
    if (i > 0) own_us.push_back(static_cast<double>(now_ns() - start) / 1e3);
  }
  return {};
}

Result<std::int64_t> StepProbe::count_wrong(StepKind kind) {
  gradients_.fill();
  if (auto time = gradients_.step(context_, kind, compute_); !time.ok()) return time.status();
  std::int64_t wrong = gradients_.count_wrong();
  const auto contributors = context_.allreduce(std::span<std::int64_t>(&wrong, 1));
  if (Status status = check_complete(contributors, context_.size()); !status.ok()) return status;
  return wrong;
}

}  // namespace elastic::bench
