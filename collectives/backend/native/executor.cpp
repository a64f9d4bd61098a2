#include "collectives/backend/native/executor.hpp"

#include <cstring>

#include "collectives/kernels/copy.hpp"

namespace elastic::collectives {

using plan::Step;
using transport::Link;

namespace {

/// Combines nothing: copies received bytes by non-temporal stores.
void stream(std::byte* into, const std::byte* /*left*/, const std::byte* received,
            std::size_t bytes) {
  kernels::copy(into, received, bytes, kernels::Store::kNonTemporal);
}

}  // namespace

Reducer reducer_of(DType dtype, ReduceOp op) {
  return {kernels::reduce(dtype, op), kernels::reduce(dtype, op, kernels::Store::kNonTemporal),
          size_of(dtype), dtype};
}

Executor::Executor(transport::Mesh& mesh) : mesh_(mesh), advance_([this] { return advance(); }) {}

Status Executor::run(const Schedule& schedule, const PlanBuffers& memory, const Reducer& reducer) {
  if (schedule.steps() == 0) return {};
  schedule_ = &schedule;
  memory_ = memory;
  reducer_ = reducer;
  if (!mesh_.has_all_links()) {
    if (Status linked = mesh_.require(schedule.peers()); !linked.ok()) return linked;
  }
  start();
  return mesh_.run_until(advance_, schedule.sent_bytes());
}

Status Executor::run_alone(const Schedule& schedule, const PlanBuffers& memory,
                           const Reducer& reducer) try {
  const Status status = run(schedule, memory, reducer);
  if (!status.ok()) mesh_.abandon();
  return status;
} catch (...) {
  mesh_.abandon();
  throw;
}

/// Posts all steps that wait for nothing. From then on, each completed step decrements the wait
/// counts of its dependents (`complete`). A dependent with count 0 is performed if it is local; if
/// it is a message, it is posted behind the earlier messages of its link.
void Executor::start() {
  scratch_.resize(schedule_->scratch_bytes());
  left_ = schedule_->steps();
  waits_.assign(schedule_->waits().begin(), schedule_->waits().end());
  local_.assign(schedule_->ready().begin(), schedule_->ready().end());
  progress_.clear();
  for (const Schedule::Queue& queue : schedule_->queues()) {
    Progress& progress = progress_.emplace_back();
    progress.link = &mesh_.link(queue.peer);
    progress.sent_before = progress.link->sent();
    progress.received_before = progress.link->received();
  }
  for (std::size_t queue = 0; queue < progress_.size(); ++queue) {
    post_receives(queue);
    post_sends(queue);
  }
  run_local_steps();
}

bool Executor::advance() {
  // A completed step may release messages that complete at once, so repeat until none does.
  for (std::size_t before = left_ + 1; left_ > 0 && left_ < before;) {
    before = left_;
    for (std::size_t queue = 0; queue < progress_.size(); ++queue) collect(queue);
    run_local_steps();
  }
  return left_ == 0;
}

void Executor::collect(std::size_t queue) {
  Progress& progress = progress_[queue];
  const Schedule::Queue& messages = schedule_->queues()[queue];
  const std::size_t sent = progress.link->sent() - progress.sent_before;
  while (progress.sends_done < sent) complete(messages.sends[progress.sends_done++]);
  const std::size_t received = progress.link->received() - progress.received_before;
  while (progress.receives_done < received) complete(messages.receives[progress.receives_done++]);
}

void Executor::complete(std::int32_t index) {
  --left_;
  for (const std::int32_t waiting : schedule_->dependents(index)) {
    if (--waits_[static_cast<std::size_t>(waiting)] > 0) continue;
    const Step::Kind kind = schedule_->step(waiting).kind;
    if (is_local(kind)) {
      local_.push_back(waiting);
    } else if (kind == Step::Kind::kSend) {
      post_sends(schedule_->queue_of(waiting));
    } else {
      post_receives(schedule_->queue_of(waiting));
    }
  }
}

// Messages on a link are posted in order: a ready message waits for those before it.
void Executor::post_sends(std::size_t queue) {
  Progress& progress = progress_[queue];
  const auto& sends = schedule_->queues()[queue].sends;
  for (; progress.sends_posted < sends.size(); ++progress.sends_posted) {
    const std::int32_t index = sends[progress.sends_posted];
    if (waits_[static_cast<std::size_t>(index)] > 0) return;
    const plan::Range& from = schedule_->step(index).from;
    progress.link->send({source(from), from.bytes});
  }
}

void Executor::post_receives(std::size_t queue) {
  Progress& progress = progress_[queue];
  const auto& receives = schedule_->queues()[queue].receives;
  for (; progress.receives_posted < receives.size(); ++progress.receives_posted) {
    const std::int32_t index = receives[progress.receives_posted];
    if (waits_[static_cast<std::size_t>(index)] > 0) return;
    progress.link->receive(sink_of(schedule_->step(index)));
  }
}

transport::Sink Executor::sink_of(const Step& step) {
  transport::Sink sink{{address(step.into), step.into.bytes}, {}, nullptr};
  const bool bypasses_cache = memory_.bypasses_cache && step.last_use;
  if (step.kind != Step::Kind::kReceive) {
    sink.combine = {bypasses_cache ? reducer_.reduce_last : reducer_.reduce, reducer_.element,
                    source(step.from), step.kind == Step::Kind::kReduceReceived};
  } else if (bypasses_cache) {
    sink.combine = {stream, 1};
  }
  if (step.first_write) sink.overwriting = memory_.overwriting;
  return sink;
}

void Executor::run_local_steps() {
  while (!local_.empty()) {
    const std::int32_t index = local_.back();
    local_.pop_back();
    perform(schedule_->step(index));
    complete(index);
  }
}

void Executor::perform(const Step& step) {
  if (step.into.bytes == 0) return;
  std::byte* const into = address(step.into);
  const std::size_t elements = step.into.bytes / reducer_.element;
  switch (step.kind) {
    case Step::Kind::kCopy:
      std::memmove(into, source(step.from), step.into.bytes);
      return;
    case Step::Kind::kReduce:
      return reducer_.reduce(into, into, source(step.from), elements);
    case Step::Kind::kReduceFlipped:
      return reducer_.reduce(into, source(step.from), into, elements);
    case Step::Kind::kFinish:
      if (reducer_.divisor > 1) kernels::divide(reducer_.dtype, into, elements, reducer_.divisor);
      return;
    default:
      return;  // not local
  }
}

std::byte* Executor::address(const plan::Range& range) {
  return (range.area == plan::Area::kScratch ? scratch_.data() : memory_.data) + range.offset;
}

const std::byte* Executor::source(const plan::Range& range) {
  return range.area == plan::Area::kInput ? memory_.input + range.offset : address(range);
}

}  // namespace elastic::collectives
