#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "elastic/types.hpp"

namespace elastic {

/// Names one worker as a member of the job. Never reused: a worker that is restarted, or joins
/// again after it was given up, has another one.
using WorkerId = std::uint64_t;

/// The workers that took part in a collective: exactly those with a contribution to its result. The
/// same on every rank that returned from the call. A cheap value; immutable.
class Contributors {
 public:
  /// No workers.
  Contributors() = default;
  /// `workers` in the order of their ranks in the view of `generation`.
  Contributors(std::shared_ptr<const std::vector<WorkerId>> workers, std::uint64_t generation)
      : workers_(std::move(workers)), generation_(generation) {}

  /// \returns the number of workers.
  std::size_t size() const noexcept { return workers_ ? workers_->size() : 0; }
  /// \returns the workers, in the order of their ranks in the view of `generation()`.
  std::span<const WorkerId> workers() const noexcept {
    return workers_ ? std::span<const WorkerId>(*workers_) : std::span<const WorkerId>();
  }
  /// \returns the generation of the view in which the call was completed.
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  std::shared_ptr<const std::vector<WorkerId>> workers_;
  std::uint64_t generation_ = 0;
};

/// Result of an allgather, an alltoall or, on the root, a gather: the blocks of all contributors,
/// one after another in rank order. For bools `values` is a std::vector<bool>, here and below.
template <Element T>
struct Gathered {
  std::vector<T> values;            ///< the elements of all blocks
  std::vector<std::size_t> counts;  ///< elements of each contributor
  Contributors contributors;        ///< the workers with a block in it
};

/// Result of a reduce_scatter, this worker's part of the reduced tensor, or of a scatter, this
/// worker's block of the root's tensor.
template <Element T>
struct Scattered {
  std::vector<T> values;      ///< the elements of the part
  std::size_t offset = 0;     ///< of the first value in what all contributors get
  Contributors contributors;  ///< the workers with a contribution to it
};

/// The result of an allgather, an alltoall or a gather in a tensor of the caller: the blocks of all
/// contributors, one after another in rank order, at its beginning.
struct GatheredBlocks {
  std::size_t count = 0;            ///< elements of all blocks together
  std::vector<std::size_t> counts;  ///< elements of each contributor
  Contributors contributors;        ///< the workers with a block in it
};

/// The result of a reduce_scatter or a scatter in a tensor of the caller: this worker's part of the
/// whole tensor, at its beginning.
struct ScatteredPart {
  std::size_t count = 0;      ///< elements of the part
  std::size_t offset = 0;     ///< of the first of them in what all contributors get
  Contributors contributors;  ///< the workers with a contribution to it
};

/// A message that has come into a tensor of the caller, at its beginning.
struct ReceivedMessage {
  std::size_t count = 0;      ///< elements of the message
  Contributors contributors;  ///< the two workers
};

/// Blocks of one tensor, each for one worker: what `alltoall` and the root of a `scatter` give.
struct BlocksView {
  /// All blocks, one after another.
  ConstTensorView data;
  /// The elements of each block, in the order of `to`. None: all blocks have the same size.
  std::span<const std::size_t> counts = {};
  /// The worker that each block is for, as `members()` or an earlier call returned them. None: the
  /// members as this program saw them when it last asked for rank, size, generation or members. A
  /// block for a worker that has left since is not sent.
  Contributors to = {};
  /// The shape of an element of an alltoall if it is more than a number: that of all members.
  std::span<const std::size_t> row = {};
};

/// How `run` came to its end.
enum class RunOutcome : std::uint8_t {
  kFinished,  ///< the body returned: the training is done
  kRemoved,   ///< this worker was asked to leave; the others go on
  kStopped,   ///< the job was asked to stop
  kLeftOut,   ///< the job was done or stopped without this worker, which came too late or had been
              ///< given up: its state is not that of the training's end
};

}  // namespace elastic
