#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/plan.hpp"
#include "elastic/types.hpp"

namespace elastic::plan {

/// Executes the plans of all ranks at once, in a random order that only `after` and the order of
/// messages restrict. Every message is cut in two; each half leaves its source and reaches its
/// destination at a random moment, the latest possible ones included, so that a plan which
/// overwrites what it has yet to send, or reads what is still being received, gives a wrong result.
class Simulator {
 public:
  Simulator(std::vector<Plan> plans, DType dtype, ReduceOp op, std::uint64_t seed);

  /// Each rank's contribution, and after the run its result.
  std::vector<std::vector<std::byte>>& data() { return data_; }
  /// From now on kInput is other memory than kData, in which there is garbage.
  void separate_input();
  /// Every channel takes some messages before they are received.
  void buffer() { buffered_ = true; }
  /// Puts back what was overwritten by steps that are marked as the first to write.
  void undo();

  /// Empty when all steps of all ranks were completed, or `most` things done; otherwise what went
  /// wrong.
  std::string run(std::size_t most = ~std::size_t{0});
  /// The moment (counted in actions) at which each rank did its first and its last thing.
  const std::vector<std::size_t>& started() const { return started_; }
  const std::vector<std::size_t>& finished() const { return finished_; }

 private:
  struct Rank {
    std::vector<bool> done;
    std::size_t left = 0;
    std::deque<std::int32_t> local;
  };
  /// Messages from one rank to another: the steps on both sides in order, and the halves so far.
  struct Channel {
    std::vector<std::int32_t> sends;
    std::vector<std::int32_t> receives;
    std::size_t copied = 0;
    std::size_t applied = 0;
    std::deque<std::vector<std::byte>> halves;
    bool lazy = false;
  };
  struct Action {
    enum class Kind : std::uint8_t { kLocal, kCopy, kApply };
    Kind kind;
    int rank;  // kLocal
    int from;
    int to;
  };
  static constexpr std::size_t kCapacity = 4;

  std::size_t at(int rank) const { return static_cast<std::size_t>(rank); }
  Channel& channel(int from, int to) { return channels_[at(from) * plans_.size() + at(to)]; }
  const Step& step(int rank, std::int32_t index) const {
    return plans_[at(rank)].steps[static_cast<std::size_t>(index)];
  }
  bool may_start(int rank, std::int32_t index) const;
  void complete(int rank, std::int32_t index);
  std::byte* address(int rank, const Range& range);
  std::byte* source(int rank, const Range& range);
  Range half(const Range& range, std::size_t which) const;
  bool can_copy(int from, int to);
  bool can_apply(int from, int to);
  std::vector<Action> possible(bool lazy);
  void perform(const Action& action);
  void perform_local(int rank);
  void copy(int from, int to);
  void apply(int from, int to);
  std::string check() const;
  std::string stuck() const;

  std::vector<Plan> plans_;
  std::size_t element_;
  kernels::Function reduce_;
  std::mt19937_64 random_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<std::vector<std::byte>> input_;  // empty: the same as data_
  struct Overwritten {
    std::byte* at;
    std::vector<std::byte> content;
  };
  std::vector<Overwritten> overwritten_;
  std::vector<std::vector<std::byte>> scratch_;
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;
  bool buffered_;
  std::size_t now_ = 0;
  std::vector<std::size_t> started_;
  std::vector<std::size_t> finished_;
};

}  // namespace elastic::plan
