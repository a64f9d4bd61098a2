#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "coordinator/bucket_table.hpp"
#include "coordinator/negotiation_note.hpp"
#include "coordinator/rank_range.hpp"

namespace elastic::coordinator {

/// Gathers the words of the ranks in a subtree of the tree of notes (`NoteRoutes`), on their way to
/// the leader. A word that is the same from all of them goes on once, for all of them. So no rank
/// reads more notes about a bucket than it has children, unless ranks differ.
///
/// The leader needs the word of every rank to order a bucket, or to let a tensor fail. So a word
/// waits here until all ranks of the subtree have said it. Three do not wait:
/// - The submission by name of a tensor in a known bucket. The leader may have to dissolve that
///   bucket, and only then do the ranks that said it is ready submit the tensor by name.
/// - That a rank has joined. From then on no word waits for that rank.
/// - Any word once nothing has happened for long (`release`), up to the next order. Programs may
///   wait for each other, and the leader has to learn which ranks lack which tensors.
///
/// Pure. Owned by a Negotiator.
class NoteGathering {
 public:
  /// Forgets everything, and gathers the words of `ranks`. Those of a single rank go on at once.
  void restart(RankRange ranks);

  /// `from` say `item`: SubmitByName, BucketReady, Blocked, Joined, or SubmitToGroup, which does
  /// not wait: the ranks of a group may be in many subtrees. `bucket` is the id of the bucket that
  /// it is about, 0 if that is not known. kProtocol if one of the ranks has said it already.
  Status add(RankRange from, const NoteItem& item, std::uint64_t bucket);
  /// Nothing has happened for long: words no longer wait, up to the next order.
  void release();
  /// The bucket is next in the order, which settles all that was said of it and its tensors.
  void ordered(const Bucket& bucket);
  /// A call of a group is next in the order.
  void ordered();
  /// All ranks have joined, and none has any more.
  void end_join();
  /// The bucket no longer exists. The leader ignores which ranks said that it is ready.
  void dissolved(std::uint64_t bucket) { ready_.erase(bucket); }

  /// The notes to send towards the leader, in order.
  std::vector<RanksNote> take();

 private:
  /// The words about one tensor or bucket.
  struct Word {
    std::vector<bool> said;  ///< by place in the subtree
    int count = 0;           ///< ranks that said it
    bool at_once = false;    ///< does not wait
    bool parted = false;     ///< something of it has gone on
    std::vector<std::pair<RankRange, NoteItem>> held;
  };

  Status note_said(Word& word, RankRange from) const;
  Status note_joined(RankRange from, const NoteItem& item);
  bool is_said_by_all(const Word& word) const { return word.count + joined_count_ >= ranks_.count; }
  void let_go(Word& word);
  void conclude(Word& word);
  void set_blocked(RankRange from, bool blocked);
  void write(RankRange from, const NoteItem& item);
  void write_from_all(const NoteItem& item);

  RankRange ranks_;
  std::unordered_map<std::string, Word> by_name_;
  std::unordered_map<std::uint64_t, Word> ready_;  // by bucket
  std::vector<bool> blocked_;                      // by place in the subtree
  int blocked_count_ = 0;
  std::vector<bool> joined_;  // by place in the subtree
  int joined_count_ = 0;
  bool at_once_ = false;  // nothing waits up to the next order
  std::vector<std::pair<RankRange, NoteWriter>> notes_;
};

}  // namespace elastic::coordinator
