#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/backend.hpp"

namespace elastic::collectives {

/// Small broadcasts, allgathers, alltoalls, gathers, scatters and scans: every rank gives all that
/// it has to every other rank, in one message. One exchange, after which every rank has what every
/// rank gave. So the result is the same for all ranks, as a holder can hand it over; each takes its
/// own part when it delivers it.
///
/// Blocks may differ in size, and may be too large on some ranks. A message of such a call begins
/// with the counts of its blocks, from which all ranks see whether all data has come. If not, the
/// counts have been exchanged all the same.
///
/// This makes and reads the messages; the backend moves them. Owned by the thread that runs the
/// lane's operation.
class SmallExchange {
 public:
  SmallExchange(int rank, int size) : rank_(rank), size_(size) {}

  /// A rank's part in an exchange, of one tensor.
  struct Part {
    Kind kind = Kind::kBarrier;
    DType dtype = DType::kU8;
    int root = 0;                                ///< of the kinds that have one
    std::size_t count = 0;                       ///< elements, as in Call::sections
    bool ragged = false;                         ///< see Call
    std::span<const std::uint64_t> counts = {};  ///< see Call; valid until `begin` returns
    std::span<const std::byte> input = {};       ///< valid until `begin` returns
  };
  /// Whether the call takes part in an exchange by messages of at most `most` bytes: the same on
  /// all ranks. This rank's data may be too large for them all the same.
  bool takes(const Part& part, std::size_t most) const;
  /// Whether this rank's data fits into its message.
  bool fits(const Part& part, std::size_t most) const;

  /// Begins the exchange of a part that it takes. \returns the content of this rank's message,
  /// valid until the next `begin`.
  std::span<const std::byte> begin(const Part& part, std::size_t most);

  /// Bytes that each rank's message fits in: the same on all ranks.
  std::size_t slot_bytes() const;

  /// When the messages of all ranks have come; each has the content and maybe more: if they have
  /// all data, makes the result in `payload` and returns true. Payload::data has the data of all
  /// ranks, that of a broadcast or a scatter only the root's, and Blocks::counts those of all
  /// blocks of rank 0, then of rank 1, and so on. Otherwise only `counts` are known.
  Result<bool> finish(std::span<const std::span<const std::byte>> messages, Payload& payload);
  /// Those of rank 0 first. Empty if the messages of the call have none.
  const std::vector<std::uint64_t>& counts() const { return counts_; }

 private:
  using Messages = std::span<const std::span<const std::byte>>;

  bool gives(int rank) const;
  std::size_t counts_in_message(int rank) const;
  std::size_t header(int rank) const { return counts_in_message(rank) * sizeof(std::uint64_t); }
  bool read_counts(Messages messages);
  void measure();
  void collect(Messages messages, Payload& payload) const;

  int rank_;
  int size_;
  Part part_;  ///< without its spans
  std::size_t most_ = 0;
  std::vector<std::byte> own_;
  std::vector<std::uint64_t> counts_;  ///< of all ranks
  std::vector<std::size_t> bytes_;     ///< of the data that each rank gives
};

}  // namespace elastic::collectives
