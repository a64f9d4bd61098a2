#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "coordinator/tensor_request.hpp"

namespace elastic::coordinator {

/// What ranks of one view tell each other about named tensors. Bucket ids are the leader's, start
/// at 1 in every view and are never used twice in it.

/// To the leader: this request was submitted here.
struct Announce {
  TensorRequest request;
  bool operator==(const Announce&) const = default;
};
/// To the leader: everything in this bucket was submitted here, just as it is defined.
struct Ready {
  std::uint64_t bucket = 0;
  bool operator==(const Ready&) const = default;
};
/// From the leader: the bucket is no more; announce what you have of it.
struct Dissolve {
  std::uint64_t bucket = 0;
  bool operator==(const Dissolve&) const = default;
};
/// From the leader: what `bucket` stands for from now on.
struct Define {
  std::uint64_t bucket = 0;
  std::vector<TensorRequest> requests;
  bool operator==(const Define&) const = default;
};
/// From the leader: next in the order comes this bucket.
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

using NoteItem = std::variant<Announce, Ready, Dissolve, Define, Run, Mismatch>;

/// Collects items into as few notes as fit the links. Owned by a Negotiator.
class NoteWriter {
 public:
  void add(const NoteItem& item);
  /// The notes in the order in which they have to be sent; afterwards there are none.
  std::vector<std::vector<std::byte>> take();
  void clear() { notes_.clear(); }

  /// A note grows no further once it has this size; one item takes less than kMaxNoteBytes / 2.
  static constexpr std::size_t kFullNoteBytes = 512 * 1024;
  static constexpr std::size_t kMaxNoteBytes = 1024 * 1024;

 private:
  std::vector<std::vector<std::byte>> notes_;
};

/// kProtocol, with what is wrong and where, for anything that NoteWriter does not write.
Result<std::vector<NoteItem>> read_note(std::span<const std::byte> note);

}  // namespace elastic::coordinator
