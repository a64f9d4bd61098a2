#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "collectives/plan/plan.hpp"

namespace elastic::plan {

/// Adds steps to a plan. Every function returns the index of the step it added.
class Builder {
 public:
  static constexpr std::int32_t kNone = Step::kNone;

  std::int32_t send(int peer, Range from, std::int32_t after = kNone,
                    std::int32_t and_after = kNone) {
    return add(Step::Kind::kSend, peer, from, {}, after, and_after);
  }
  std::int32_t receive(int peer, Range into, std::int32_t after = kNone) {
    return add(Step::Kind::kReceive, peer, {}, into, after);
  }
  /// `into` = `left` op what arrives from `peer`.
  std::int32_t receive_reduce(int peer, Range into, Range left, std::int32_t after = kNone) {
    return add(Step::Kind::kReceiveReduce, peer, left, into, after);
  }
  /// `into` = what arrives from `peer` op `right`.
  std::int32_t reduce_received(int peer, Range into, Range right, std::int32_t after = kNone) {
    return add(Step::Kind::kReduceReceived, peer, right, into, after);
  }
  /// Marks the receive `step` as the first step that writes its range.
  void first_write(std::int32_t step) {
    plan_.steps[static_cast<std::size_t>(step)].first_write = true;
  }
  std::int32_t local(Step::Kind kind, Range into, Range from, std::int32_t after = kNone,
                     std::int32_t and_after = kNone) {
    return add(kind, kNone, from, into, after, and_after);
  }
  /// Makes scratch at least `bytes` long.
  void need_scratch(std::size_t bytes) {
    if (bytes > plan_.scratch_bytes) plan_.scratch_bytes = bytes;
  }
  /// Marks the receive `step` as the last step that uses the range that it writes.
  void last_use(std::int32_t step) { plan_.steps[static_cast<std::size_t>(step)].last_use = true; }
  /// Makes `into` final once the step `after` is complete.
  std::int32_t finish(Range into, std::int32_t after) {
    return local(Step::Kind::kFinish, into, {}, after);
  }
  void reserve(std::size_t steps) { plan_.steps.reserve(steps); }
  Plan take() { return std::move(plan_); }

 private:
  std::int32_t add(Step::Kind kind, std::int32_t peer, Range from, Range into, std::int32_t after,
                   std::int32_t and_after = kNone) {
    Step& step = plan_.steps.emplace_back();
    step.kind = kind;
    step.peer = peer;
    step.from = from;
    step.into = into;
    step.after[0] = after;
    step.after[1] = and_after;
    return static_cast<std::int32_t>(plan_.steps.size() - 1);
  }
  Plan plan_;
};

}  // namespace elastic::plan
