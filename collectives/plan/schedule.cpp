#include "collectives/plan/schedule.hpp"

#include <algorithm>
#include <utility>

namespace elastic::plan {

bool is_local(Step::Kind kind) {
  return kind != Step::Kind::kSend && kind != Step::Kind::kReceive &&
         kind != Step::Kind::kReceiveReduce && kind != Step::Kind::kReduceReceived;
}

Schedule::Schedule(Plan plan) : plan_(std::move(plan)) {
  find_dependents();
  fill_queues();
}

/// Inverts the plan's edges by a counting sort: counts the dependents of each step, turns the
/// counts into the offsets `first_`, and fills `dependents_`. Linear in steps and edges.
void Schedule::find_dependents() {
  const std::size_t count = plan_.steps.size();
  waits_.assign(count, 0);
  first_.assign(count + 1, 0);
  const auto each_edge = [this, count](auto&& use) {
    for (std::size_t i = 0; i < count; ++i) {
      for (const std::int32_t before : plan_.steps[i].after) {
        if (before != Step::kNone) use(static_cast<std::size_t>(before), i);
      }
    }
  };
  each_edge([this](std::size_t before, std::size_t step) {
    ++first_[before + 1];
    ++waits_[step];
  });
  for (std::size_t i = 0; i < count; ++i) first_[i + 1] += first_[i];
  dependents_.resize(first_[count]);
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  each_edge([&](std::size_t before, std::size_t step) {
    dependents_[next[before]++] = static_cast<std::int32_t>(step);
  });
}

void Schedule::fill_queues() {
  queue_of_.assign(plan_.steps.size(), 0);
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    const auto index = static_cast<std::int32_t>(i);
    if (is_local(step.kind)) {
      if (waits_[i] == 0) ready_.push_back(index);
      continue;
    }
    auto queue = std::find_if(queues_.begin(), queues_.end(),
                              [&](const Queue& each) { return each.peer == step.peer; });
    if (queue == queues_.end()) queue = queues_.insert(queue, Queue{step.peer, {}, {}});
    if (step.kind == Step::Kind::kSend) sent_bytes_ += step.from.bytes;
    queue_of_[i] = static_cast<std::uint32_t>(queue - queues_.begin());
    (step.kind == Step::Kind::kSend ? queue->sends : queue->receives).push_back(index);
  }
  for (const Queue& queue : queues_) peers_.push_back(queue.peer);
}

}  // namespace elastic::plan
