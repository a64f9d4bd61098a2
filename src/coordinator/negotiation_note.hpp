#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "coordinator/rank_range.hpp"
#include "coordinator/tensor_request.hpp"

namespace elastic::coordinator {

/// The messages of the negotiation. The leader assigns the ids of buckets. They start at 1 in every
/// view, and none is used twice in it.

/// To the leader: this request was submitted here.
struct SubmitByName {
  TensorRequest request;
  bool operator==(const SubmitByName&) const = default;
};
/// To the leader: all requests of this bucket were submitted here, exactly as it is defined.
struct BucketReady {
  std::uint64_t bucket = 0;
  bool operator==(const BucketReady&) const = default;
};
/// To the leader: the program here blocks, and has submitted all that was told. It submits no more
/// until a request is complete.
struct Blocked {
  bool operator==(const Blocked&) const = default;
};
/// From the leader: the bucket no longer exists. The follower submits its requests in it by name.
struct Dissolve {
  std::uint64_t bucket = 0;
  bool operator==(const Dissolve&) const = default;
};
/// From the leader: the requests of `bucket` from now on.
struct Define {
  std::uint64_t bucket = 0;
  std::vector<TensorRequest> requests;
  bool operator==(const Define&) const = default;
};
/// From the leader: this bucket is next in the order.
struct Run {
  std::uint64_t bucket = 0;
  bool operator==(const Run&) const = default;
};
/// From the leader: next in the order, `name` fails everywhere with `text`.
struct Mismatch {
  std::string name;
  std::string text;
  bool operator==(const Mismatch&) const = default;
};

/// To the leader: this call of a group was submitted here.
struct SubmitToGroup {
  GroupRequest call;
  bool operator==(const SubmitToGroup&) const = default;
};
/// From the leader: next in the order, the ranks of the group make this call or, with a text, it
/// fails for them.
struct RunInGroup {
  GroupRequest call;
  std::string mismatch;
  bool operator==(const RunInGroup&) const = default;
};

/// To the leader: this rank has joined. It submits nothing more until all ranks have.
struct Joined {
  std::uint64_t position = 0;  ///< operations of the lane before it; told again in later views
  bool operator==(const Joined&) const = default;
};
/// From the leader: next in the order, the join ends, as all ranks have joined.
struct EndJoin {
  int last = 0;  ///< the rank that joined last
  bool operator==(const EndJoin&) const = default;
};

using NoteItem = std::variant<SubmitByName, BucketReady, Dissolve, Define, Run, Mismatch, Blocked,
                              SubmitToGroup, RunInGroup, Joined, EndJoin>;

/// Packs items into as few notes as possible within the limit of the links. Owned by a Negotiator.
class NoteWriter {
 public:
  void add(const NoteItem& item);
  /// Takes the notes, in the order in which they have to be sent.
  std::vector<std::vector<std::byte>> take();
  void clear() { notes_.clear(); }

  /// A note is full at this size. One item takes less than kMaxNoteBytes / 2, and NoteRoutes puts
  /// the ranks in front.
  static constexpr std::size_t kFullNoteBytes = 512 * 1024 - 64;
  static constexpr std::size_t kMaxNoteBytes = 1024 * 1024;

 private:
  std::vector<std::vector<std::byte>> notes_;
};

/// A note, and the ranks that say what is in it, each of them all of it.
struct RanksNote {
  RankRange from;
  std::vector<std::byte> bytes;
};

/// Decodes a note. kProtocol, with the error and its place, for anything that NoteWriter does not
/// write.
Result<std::vector<NoteItem>> read_note(std::span<const std::byte> note);

}  // namespace elastic::coordinator
