#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/plan/plan.hpp"

namespace elastic::plan {

/// A plan with the indices that its execution needs: the steps that wait for each step, and the
/// messages of each link in order. Immutable, so that it serves all calls of the same shape.
class Schedule {
 public:
  explicit Schedule(Plan plan);

  /// The messages exchanged with one peer, as indices of steps in their order.
  struct Queue {
    int peer = 0;
    std::vector<std::int32_t> sends;
    std::vector<std::int32_t> receives;
  };

  const Step& step(std::int32_t index) const {
    return plan_.steps[static_cast<std::size_t>(index)];
  }
  std::size_t steps() const { return plan_.steps.size(); }
  /// The bytes of all messages that this rank sends.
  std::size_t sent_bytes() const { return sent_bytes_; }
  std::size_t scratch_bytes() const { return plan_.scratch_bytes; }
  /// How many steps each step waits for.
  const std::vector<std::uint8_t>& waits() const { return waits_; }
  /// The steps that wait for `index`.
  std::span<const std::int32_t> dependents(std::int32_t index) const {
    const auto at = static_cast<std::size_t>(index);
    return std::span(dependents_).subspan(first_[at], first_[at + 1] - first_[at]);
  }
  const std::vector<Queue>& queues() const { return queues_; }
  /// The peers of the queues.
  const std::vector<int>& peers() const { return peers_; }
  /// Index into `queues()` of a step that is not local.
  std::size_t queue_of(std::int32_t index) const {
    return queue_of_[static_cast<std::size_t>(index)];
  }
  /// Local steps that wait for nothing.
  const std::vector<std::int32_t>& ready() const { return ready_; }

 private:
  void find_dependents();
  void fill_queues();

  Plan plan_;
  std::size_t sent_bytes_ = 0;
  std::vector<std::uint8_t> waits_;
  std::vector<std::size_t> first_;  // step's first entry in dependents_; one more than steps
  std::vector<std::int32_t> dependents_;
  std::vector<Queue> queues_;
  std::vector<int> peers_;
  std::vector<std::uint32_t> queue_of_;
  std::vector<std::int32_t> ready_;
};

/// Whether the step needs no other rank.
bool is_local(Step::Kind kind);

}  // namespace elastic::plan
