#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "elastic/detail/export.hpp"
#include "elastic/results.hpp"

namespace elastic {

/// Distributes the samples of each epoch to the workers such that every sample is used exactly
/// once, however the workers change.
///
/// An epoch is a permutation of the samples, the same on every platform for the same seed, epoch
/// and size. It is computed where it is asked for: a sampler is a few integers, however many
/// samples there are. A step draws the next *global batch* of positions in it, and each worker
/// takes its share:
///
///     auto share = sampler.next(batch);            // indices of samples, this worker's
///     ... gradients over share, allreduce ...
///     sampler.commit(contributors);                // the workers in the sum
///
/// Samples that were drawn by a worker that did not contribute are returned, and drawn again by
/// others. All workers compute the same from the same agreed inputs (members, batch, contributors):
/// no messages.
///
/// Several operations of one step (named ones, or one call after another) can have different
/// contributors: when a worker dies, those that are complete have its part, and the others have
/// not. Give `commit` the contributors of all of them:
///
///     sampler.commit({first.wait(), second.wait()});
///
/// A worker's samples count as used when it is in every one. Where it is in some only, its samples
/// are drawn again, so the sums that have its part see them twice. Sum all of a step in one grouped
/// operation where that must not be.
///
/// For virtual workers, GlobalBatch draws shares that do not depend on the members, and any worker
/// can look at any share: `draw` and `share`.
///
/// Add it to the `State`. `elastic::run` then also tells it the members.
///
/// Thread safety: none; belongs to the thread that trains.
class ELASTIC_API Sampler {
 public:
  /// Positions [begin, end) of the epoch's permutation.
  struct Range {
    std::uint64_t begin = 0;  ///< the first position
    std::uint64_t end = 0;    ///< the position after the last

    /// \returns whether both ends are equal.
    bool operator==(const Range&) const = default;
  };

  /// Distributes samples 0 to size-1, of data that has `data_size` samples if that is given.
  /// \throws Error kInvalidArgument if `size` is 0 or greater than `data_size`.
  /// \{
  Sampler(std::size_t size, std::uint64_t seed);
  Sampler(std::size_t size, std::uint64_t seed, std::size_t data_size);
  /// \}

  /// Says which workers share the next draws, in rank order, and which of them this one is.
  /// Abandons a draw that was not committed.
  /// \throws Error kInvalidArgument, changing nothing, if `members` lacks `self` or has a worker
  ///   twice.
  void set_members(std::span<const WorkerId> members, WorkerId self);

  /// Draws the next global batch, `batch_per_worker` samples for each member; the same number on
  /// all members. Calling again without `commit` draws the same again; if that goes on, a line in
  /// the log warns of a forgotten `commit`, once. A global batch never spans
  /// two epochs: at an epoch's tail what is left is split as evenly as possible, and a share may be
  /// empty (the worker still takes part in the step). When an epoch is used up, the draw begins the
  /// next.
  /// \returns this worker's share: indices of samples, valid until the next call that changes the
  ///   sampler.
  /// \throws Error kInvalidArgument if `batch_per_worker` is 0; kNotInitialized before
  ///   `set_members`.
  std::span<const std::size_t> next(std::size_t batch_per_worker);

  /// Draws the next global batch in `shares` shares of `batch_per_share` samples, which depend on
  /// what is used of the epoch and on nothing else. At an epoch's tail, and when it is used up, as
  /// `next`.
  /// \throws Error kInvalidArgument if either number is 0.
  void draw(std::size_t shares, std::size_t batch_per_share);

  /// Looks at one share of the open draw. After `next`, it is the share of the member with rank
  /// `index`.
  /// \returns indices of samples, valid until the next call that changes the sampler or looks at a
  ///   share.
  /// \throws Error kInvalidArgument if there is no such share.
  std::span<const std::size_t> share(std::size_t index);

  /// Ends the draw: `contributors`, in rank order, are the workers that were in the sum. They
  /// become the members, as far as they were members. After `next` the shares of the other members
  /// are returned; a draw by `draw` is used whole, because a step over virtual workers is not over
  /// before each is in the sum. Does nothing if no draw is open.
  /// \throws Error kInvalidArgument, changing nothing, if none of them was a member.
  /// \{
  void commit(std::span<const WorkerId> contributors);
  void commit(const Contributors& contributors) { commit(contributors.workers()); }
  /// \}
  /// Ends the draw after several operations: one list of contributors for each, in any order. A
  /// worker counts if it is in all of them. All members give the lists of the same operations.
  /// \throws Error kInvalidArgument, changing nothing, if there is no list, or if no member is in
  ///   all of them.
  /// \{
  void commit(std::span<const Contributors> operations);
  void commit(std::initializer_list<Contributors> operations) {
    commit(std::span<const Contributors>(operations.begin(), operations.size()));
  }
  /// \}

  /// \returns the workers that share the next draws, in rank order; empty before `set_members`.
  std::span<const WorkerId> members() const noexcept { return members_; }
  /// \returns which of them this worker is.
  WorkerId self() const noexcept { return self_; }
  /// \returns the seed of the permutations.
  std::uint64_t seed() const noexcept { return seed_; }
  /// \returns the epoch of the latest draw, from 0.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// \returns the samples of this epoch used so far; `size()` when it is used up.
  std::size_t done_in_epoch() const noexcept;
  /// The condition of a training loop.
  /// \returns whether so many epochs are used up.
  bool finished(std::uint64_t epochs) const noexcept {
    return epoch_ >= epochs || (epoch_ + 1 == epochs && done_in_epoch() >= size_);
  }
  /// \returns the samples in an epoch.
  std::size_t size() const noexcept { return size_; }
  /// \returns the samples in the open draw over all members; 0 if none is open.
  std::size_t global_batch() const noexcept { return global_batch_; }

  /// For State. An open draw counts as not used.
  /// \returns the used and unused samples as bytes.
  std::vector<std::byte> save() const;
  /// Reverse of `save`; abandons an open draw and keeps the members.
  /// \throws Error kInvalidArgument, changing nothing, on bytes that are no sampler's or that are
  ///   of another number of samples.
  void load(std::span<const std::byte> bytes);

 private:
  void abandon() noexcept;
  void note_repetition();
  void begin_next_epoch_if_used_up();

  std::size_t size_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::vector<Range>
      unused_;  // ascending, disjoint, not adjacent; usually one: from here to the end

  std::vector<WorkerId> members_;
  WorkerId self_ = 0;

  std::vector<std::vector<Range>> open_;  // the open draw: positions per share
  bool members_draw_ = false;             // its shares are the members', in members_' order
  std::size_t global_batch_ = 0;
  std::size_t repetitions_ = 0;     // draws in a row that took the place of an open one
  std::vector<std::size_t> share_;  // the one that was looked at last
};

}  // namespace elastic
