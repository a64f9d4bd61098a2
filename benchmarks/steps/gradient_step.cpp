#include "benchmarks/steps/gradient_step.hpp"

#include <exception>
#include <future>
#include <latch>
#include <thread>
#include <utility>

#include "benchmarks/job/backend_contexts.hpp"
#include "benchmarks/job/host_copy.hpp"
#include "benchmarks/job/monotonic_time.hpp"

namespace elastic::bench {

namespace {

double us_since(std::int64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) / 1e3;
}

}  // namespace

const char* name_of(StepKind kind) {
  switch (kind) {
    case StepKind::kFused:
      return "fused";
    case StepKind::kUnit:
      return "unit";
    case StepKind::kWhole:
      return "whole";
    case StepKind::kBlocking:
      return "blocking";
    case StepKind::kAlone:
      return "alone";
  }
  return "unknown";
}

Gradients::Gradients(const NetworkModel& model, int rank, int ranks, const RankDevice* device)
    : rank_(rank),
      ranks_(ranks),
      pattern_(DType::kF32, ReduceOp::kSum, ranks),
      device_(device),
      stream_(device != nullptr ? device->stream() : CudaStream{}),
      memory_(tensor_memory(device, model.count() * sizeof(float))),
      all_(tensor_in(memory_, DType::kF32, device)) {
  std::size_t offset = 0;
  for (auto parameter = model.parameters.rbegin(); parameter != model.parameters.rend();
       ++parameter) {
    gradients_.push_back({parameter->name, offset, parameter->count});
    offset += parameter->count;
  }
}

void Gradients::fill() {
  const HostCopy on_host(all_, device_);
  pattern_.fill(on_host.view(), rank_);
  on_host.write();
}

std::int64_t Gradients::count_wrong() const {
  const HostCopy on_host(all_, device_);
  on_host.read();
  return pattern_.count_wrong(on_host.view());
}

TensorView Gradients::tensor_of(const Gradient& gradient) const {
  return {static_cast<float*>(all_.data) + gradient.offset, gradient.count, all_.dtype,
          all_.device};
}

Result<StepTime> Gradients::step(Context& context, StepKind kind,
                                 std::chrono::nanoseconds compute) {
  if (kind == StepKind::kFused) return fused(context, compute);
  if (kind == StepKind::kUnit) return unit(context, compute);
  if (kind == StepKind::kBlocking) return blocking(context);
  if (kind == StepKind::kAlone) return alone(compute);
  const std::int64_t start = now_ns();
  Status status = check_complete(context.allreduce(all_, ReduceOp::kSum, stream_), ranks_);
  if (!status.ok()) return status;
  const double us = us_since(start);
  return StepTime{us, us};
}

void Gradients::compute_all(std::chrono::nanoseconds compute,
                            const std::function<void(std::size_t)>& yield) const {
  const auto forward = compute / 3;
  const auto count = static_cast<std::int64_t>(gradients_.size());
  const TimePoint start = Clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    // The computation is simulated by sleep, as if another processor (a GPU) did it.
    if (compute.count() > 0) {
      std::this_thread::sleep_until(start + forward + (compute - forward) * (i + 1) / count);
    }
    yield(static_cast<std::size_t>(i));
  }
}

Result<StepTime> Gradients::alone(std::chrono::nanoseconds compute) const {
  const std::int64_t start = now_ns();
  compute_all(compute, [](std::size_t) {});
  const double us = us_since(start);
  return StepTime{us, us};
}

Result<StepTime> Gradients::fused(Context& context, std::chrono::nanoseconds compute) {
  std::vector<std::promise<Work>> works(gradients_.size());
  std::latch go(1);
  const auto submitter = std::async(std::launch::async, [&] {
    go.wait();
    compute_all(compute, [&](std::size_t index) {
      const Gradient& gradient = gradients_[index];
      try {
        works[index].set_value(
            context.allreduce_async(gradient.name, tensor_of(gradient), ReduceOp::kSum, stream_));
      } catch (...) {
        works[index].set_exception(std::current_exception());
      }
    });
  });
  StepTime time;
  Status complete;
  const std::int64_t start = now_ns();
  go.count_down();
  for (auto& work : works) {  // all, even after an error: pending operations use the memory
    Status status = check_complete(work.get_future().get().wait(), ranks_);
    if (!status.ok()) complete = status;
    time.last_us = us_since(start);
    if (time.first_us == 0) time.first_us = time.last_us;
  }
  if (!complete.ok()) return complete;
  return time;
}

Result<StepTime> Gradients::unit(Context& context, std::chrono::nanoseconds compute) {
  if (!unit_) unit_.emplace(context);
  const std::int64_t start = now_ns();
  std::async(std::launch::async, [&] {
    compute_all(compute, [&](std::size_t index) {
      unit_->allreduce(gradients_[index].name, tensor_of(gradients_[index]));
    });
  }).get();
  Status status = check_complete(unit_->wait(), ranks_);
  if (!status.ok()) return status;
  const double us = us_since(start);
  return StepTime{us, us};
}

Result<StepTime> Gradients::blocking(Context& context) {
  StepTime time;
  const std::int64_t start = now_ns();
  for (const Gradient& gradient : gradients_) {
    Status status =
        check_complete(context.allreduce(tensor_of(gradient), ReduceOp::kSum, stream_), ranks_);
    if (!status.ok()) return status;
    time.last_us = us_since(start);
    if (time.first_us == 0) time.first_us = time.last_us;
  }
  return time;
}

}  // namespace elastic::bench
