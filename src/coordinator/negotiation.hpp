#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.hpp"
#include "coordinator/bucket_builder.hpp"
#include "coordinator/bucket_table.hpp"
#include "coordinator/group_orders.hpp"
#include "coordinator/joined_ranks.hpp"
#include "coordinator/negotiation_note.hpp"
#include "coordinator/note_gathering.hpp"
#include "coordinator/rank_range.hpp"
#include "coordinator/tensor_request.hpp"

namespace elastic::coordinator {

/// One order, the same on all ranks: run these requests as one collective, or fail this one
/// request.
struct OrderItem {
  std::shared_ptr<const BucketContent> requests;  ///< for a mismatch, the one submitted here
  std::string mismatch;         ///< not empty: complete the request with kMismatch and this text
  std::vector<int> group = {};  ///< the ranks that make the call, ascending; empty: all
  /// This rank has joined, and has none of the requests: its input is the neutral element.
  bool is_neutral = false;
  std::optional<int> last_joined = {};  ///< all ranks have joined, this one last: the join ends

  bool is_mismatch() const { return !mismatch.empty(); }
  bool is_of_group() const { return !group.empty(); }
};

/// Agrees with the other ranks of a view on the order and the fusion of named requests.
///
/// Rank 0 leads. Followers report to it which requests are ready, and it orders a bucket to run
/// when all tensors of the bucket are ready on all ranks. The order in which the leader's program
/// submits names decides the buckets, once. From then on a bucket costs one small note in each
/// direction: BucketReady and Run. Where notes travel along a tree, a follower with others below it
/// gathers their notes (NoteGathering). Buckets change only if the leader's program blocks
/// (`flush`) with one of them partly submitted, or submits a name with another shape; they never
/// depend on timing, but for programs that would wait for each other forever (`force_flush`).
///
/// Pure: no threads, no clocks, no I/O. The coordinator thread owns it.
class Negotiator {
 public:
  /// Belongs to no view at first, and collects submissions until the first `restart`.
  explicit Negotiator(std::size_t bucket_bytes);
  /// Changes the size of buckets. On the leader those of which nothing is submitted are made again,
  /// as their requests are submitted again. Belongs to a view.
  void set_bucket_bytes(std::size_t bucket_bytes);

  /// Submits a request. kInvalidArgument if its name is under way already, or it is not valid.
  Status submit(TensorRequest request);
  /// Submits a call of some ranks, of which this is one. After a `restart` it has to be submitted
  /// again, with the ranks of the new view. Belongs to a view. kInvalidArgument as above.
  Status submit(GroupRequest request);
  /// This rank has no more data, and submits nothing until all ranks have joined. Until then the
  /// allreduces and barriers of the others go on without it. Lasts through views, up to the order
  /// with OrderItem::last_joined. `position`: the operations of the lane so far, which say whose
  /// join is later. kInvalidArgument if it has joined already. Requires that nothing is under way
  /// here.
  Status join(std::uint64_t position);
  /// The program on this rank blocks: it submits nothing more until a request is complete.
  void flush();
  /// Called when nothing has happened for long. A follower holds no notes back any longer. If all
  /// ranks have submitted a request of an open bucket, their programs may be blocked: the leader
  /// closes its open buckets. A follower whose program blocks tells the leader. If the programs of
  /// all ranks that lack a part of a bucket block, they wait for the other part: the leader splits
  /// the bucket.
  void force_flush();

  /// Handles a note: of the leader, or of ranks that send theirs to here. kProtocol if they may not
  /// send it now. Part of the note may have taken effect then, so the view cannot go on.
  Status on_note(RankRange from, std::span<const std::byte> note);

  /// An order that was taken in this view has its result, and its names are free again. Results
  /// that a view change hands over must be reported before `restart` too. kInternal if there was no
  /// such order.
  Status completed(const OrderItem& order);

  /// Enters a new view. Orders that are not complete by now are void, taken or not, and their
  /// requests are negotiated again. The buckets stay. A follower gathers the notes of `subtree`
  /// ranks: of itself and those that follow it.
  void restart(int rank, int size, int subtree = 1);

  /// The notes to send, in order: rank 0's to all other ranks, those of others to rank 0.
  std::vector<RanksNote> take_outgoing();
  /// The orders to carry out, in the same sequence on all ranks of the view.
  std::vector<OrderItem> take_orders();

  /// With more buckets than this the least recently used ones are forgotten, so that a program that
  /// makes up new names in every step does not fill the memory.
  static constexpr std::size_t kMaxPlannedBuckets = 8192;

 private:
  bool leading() const { return rank_ == 0; }
  std::size_t ranks() const { return static_cast<std::size_t>(size_); }
  void forget(Bucket& bucket);
  void note_submitted(Bucket& bucket);
  void put_in_order(Bucket& bucket);

  // Leader.
  void tell_followers(const NoteItem& item);
  void lead(NameState& tensor);
  void plan(NameState& tensor);
  void close(BucketContent content);
  void close_open_buckets();
  bool any_rank_waits_for_open_bucket() const;
  void apply_flush();
  void dissolve(const std::vector<Bucket*>& buckets);
  bool has_all_ranks(const Bucket& bucket, const NameState& tensor) const;
  bool waits_for_itself(const Bucket& bucket) const;
  void split_blocked_buckets();
  void split(Bucket& bucket);
  void forget_old_buckets();
  std::vector<Bucket*> idle_buckets();
  void run_if_ready(Bucket& bucket);
  void look_for_mismatch(NameState& tensor);
  std::string difference(const NameState& tensor) const;
  void fail_everywhere(NameState& tensor, std::string text);
  Status on_followers_item(RankRange from, NoteItem item);
  Status on_submit_by_name(RankRange from, SubmitByName submission);
  Status on_ready(RankRange from, const BucketReady& ready);

  // Follower.
  void follow(NameState& tensor);
  void submit_by_name(NameState& tensor);
  void submit_tensors_by_name(Bucket& bucket);
  void tell_that_blocked();
  void say(const NoteItem& item, const Bucket* bucket);
  Status gather(RankRange from, const NoteItem& item);
  Status on_leaders_item(NoteItem item);
  Status on_dissolve(const Dissolve& dissolve);
  Status on_define(Define define);
  Status on_run(const Run& run);
  Status on_mismatch(const Mismatch& mismatch);

  Status on_submit_to_group(RankRange from, GroupRequest request);
  Status on_run_in_group(RunInGroup order);
  void put_in_order(RunInGroup order);

  // Ranks that have joined.
  void tell_joined();
  void end_join(int last);
  Status on_joined(RankRange from, const Joined& joined);
  Status on_end_join(const EndJoin& end);
  bool is_refused(const TensorRequest& request) const;
  void submit_for_joined(NameState& tensor);
  void submit_for(std::size_t rank, NameState& tensor);
  void submit_all_for(std::size_t rank);
  void submit_here(const TensorRequest& request);
  void submit_here_if_awaited(NameState& tensor);
  void submit_here_what_is_awaited();

  Status apply(RankRange from, NoteItem item);

  int rank_ = -1;
  int size_ = 0;
  int subtree_ = 1;
  std::uint64_t last_sequence_ = 0;
  std::uint64_t flushed_ = 0;  // number of the last submission before the program blocked
  bool told_blocked_ = false;  // follower
  std::vector<bool> blocked_;  // leader: by rank, followers whose programs block
  std::uint64_t orders_made_ = 0;
  std::uint64_t last_id_ = 0;  // of a bucket in this view

  BucketBuilder builder_;
  std::uint64_t oldest_open_;  // no submission in an open bucket is older
  BucketTable table_;
  std::unordered_map<std::uint64_t, Bucket*> by_id_;
  std::unordered_set<Bucket*> partly_submitted_;

  std::optional<std::uint64_t> joined_at_;  // this rank has joined: at this position
  JoinedRanks joined_;                      // leader
  GroupOrders groups_;
  NoteWriter notes_;         // leader: to every follower
  NoteGathering gathering_;  // follower: to the leader
  std::vector<OrderItem> orders_;
};

}  // namespace elastic::coordinator
