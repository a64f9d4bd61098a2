#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.hpp"
#include "coordinator/bucket_planner.hpp"
#include "coordinator/bucket_table.hpp"
#include "coordinator/negotiation_note.hpp"
#include "coordinator/tensor_request.hpp"

namespace elastic::coordinator {

/// What all ranks do next: run these requests as one collective, or fail this one request.
struct OrderItem {
  std::shared_ptr<const BucketContent> requests;  ///< for a mismatch, the one submitted here
  std::string mismatch;  ///< not empty: complete the request with kMismatch and this text

  bool is_mismatch() const { return !mismatch.empty(); }
};

struct OutgoingNote {
  int to_rank = -1;
  std::vector<std::byte> bytes;
};

/// A request that was submitted by some ranks and not by others.
struct Stall {
  std::string name;
  std::vector<std::size_t> missing_ranks;
};

/// "tensor 'x' waits for ranks 2 and 3"
std::string describe(const Stall& stall);

/// Agrees with the other ranks of a view on the order and the fusion of named requests. Rank 0 is
/// the leader: it hears what is ready where and decides.
///
/// The order in which the leader's program submits names makes the plan, once; afterwards a bucket
/// runs when everything in it is ready everywhere, and costs one small note in each direction. A
/// plan changes when the leader's program blocks (`flush`) with a bucket partly submitted, or
/// submits a name with another shape; never because of timing.
///
/// Pure: no threads, no clocks, no I/O. Owned by one thread, the coordinator's.
class Negotiator {
 public:
  /// Belongs to no view: collects submissions until the first `restart`.
  explicit Negotiator(std::size_t bucket_bytes);

  /// kInvalidArgument when the name is under way already, or the request is none.
  Status submit(TensorRequest request);
  /// The program here blocks: it submits no more before something is complete.
  void flush();
  /// Nothing has happened for long. The leader closes its open buckets, without changing others, if
  /// there is something in them that all ranks have submitted: their programs may be blocked. A
  /// follower tells the leader by name what it has of buckets that are not complete here, so that
  /// `stalled` there can tell exactly.
  void force_flush();

  /// kProtocol when `from_rank` may not send that now. Some of the note may have taken effect then:
  /// the view cannot go on.
  Status on_note(int from_rank, std::span<const std::byte> note);

  /// An order taken in this view has its result: its names are free again. Results that a view
  /// change hands over must be reported before `restart`, too; kInternal when there was no such
  /// order.
  Status completed(const OrderItem& order);

  /// Enters a new view. Orders that are not completed by now are void, taken or not; what they
  /// consist of is negotiated anew. The plan stays.
  void restart(int rank, int size);

  /// Notes to send, in this order.
  std::vector<OutgoingNote> take_outgoing();
  /// Orders to carry out, in this order: the same sequence on all ranks of the view.
  std::vector<OrderItem> take_orders();

  /// On the leader: what somebody waits for, in the order of names. Nothing on a follower.
  std::vector<Stall> stalled() const;

  /// Buckets that have not been used for longest are forgotten when there are more, so that a
  /// program that makes up new names in every step does not fill the memory.
  static constexpr std::size_t kMaxPlannedBuckets = 8192;

 private:
  bool leading() const { return rank_ == 0; }
  std::size_t ranks() const { return static_cast<std::size_t>(size_); }
  void forget(Bucket& bucket);
  void note_submitted(Bucket& bucket);
  void put_in_order(Bucket& bucket);

  // Leader.
  void tell_followers(const NoteItem& item);
  void lead(NamedTensor& tensor);
  void plan(NamedTensor& tensor);
  void close(BucketContent content);
  void close_open_buckets();
  bool somebody_waits_for_open_bucket() const;
  void settle_flush();
  void dissolve(const std::vector<Bucket*>& buckets);
  void forget_old_buckets();
  void run_if_ready(Bucket& bucket);
  void look_for_mismatch(NamedTensor& tensor);
  void fail_everywhere(NamedTensor& tensor, std::size_t other_rank);
  Status on_announce(std::size_t rank, Announce announce);
  Status on_ready(std::size_t rank, const Ready& ready);

  // Follower.
  void follow(NamedTensor& tensor);
  void announce(NamedTensor& tensor);
  void announce_members(Bucket& bucket);
  Status on_dissolve(const Dissolve& dissolve);
  Status on_define(Define define);
  Status on_run(const Run& run);
  Status on_mismatch(const Mismatch& mismatch);

  Status apply(int from_rank, NoteItem item);

  int rank_ = -1;
  int size_ = 0;
  std::uint64_t last_sequence_ = 0;
  std::uint64_t flushed_ = 0;  // the program has blocked after this submission
  std::uint64_t orders_made_ = 0;
  std::uint64_t last_id_ = 0;  // of a bucket in this view

  BucketPlanner planner_;
  std::uint64_t oldest_open_;  // no submission in an open bucket is older
  BucketTable table_;
  std::unordered_map<std::uint64_t, Bucket*> by_id_;
  std::unordered_set<Bucket*> partly_submitted_;

  NoteWriter notes_;  // to the leader, or to every follower
  std::vector<OrderItem> orders_;
};

}  // namespace elastic::coordinator
