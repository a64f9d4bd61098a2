#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/buffer.hpp"
#include "collectives/backend/native/eager_allreduce.hpp"
#include "collectives/backend/payload.hpp"
#include "collectives/transport/mesh.hpp"
#include "collectives/transport/shm/arena.hpp"

namespace elastic::collectives {

/// Allreduce of tensors in the arenas of the ranks of one host, without messages for the data. Each
/// rank reduces its part of each tensor directly from all ranks' inputs. After a barrier it copies
/// the other parts from the other ranks' outputs. A rank never writes to the memory of another.
///
/// A tensor must not change while other ranks read it, but after a failed attempt its rank changes
/// it without waiting for readers. So each rank marks in shared memory the operation for which its
/// tensors are pinned, and clears the mark before it changes them. A reader checks the mark after
/// it has read, and fails if it is gone. docs/atomicity.md has the proof.
///
/// Owned by the thread that runs the lane's operation.
class SharedAllreduce {
 public:
  /// `arena`: the arena of this rank; may be null.
  SharedAllreduce(transport::Mesh& mesh, EagerAllreduce& eager,
                  std::shared_ptr<transport::Arena> arena)
      : mesh_(mesh), eager_(eager), arena_(std::move(arena)) {}

  /// Pins this rank's tensors for operation `tag`. \returns the content of its eager message: the
  /// addresses of the tensors. Empty, and nothing is pinned, if not all tensors are in the arena,
  /// or if this rank cannot read another rank's arena.
  std::span<const std::byte> offer(const transport::OpTag& tag,
                                   const transport::Fingerprint& fingerprint,
                                   std::span<const ZeroCopyTensor> tensors);

  /// Whether all ranks have offered their tensors; the same on all ranks. Waits for the other
  /// ranks' messages if this rank made an offer. The operation has begun. Fails like a link.
  Result<bool> agreed();

  /// Performs the allreduce, if `agreed`. Reports to `undo` what it overwrites in place. `barrier`
  /// is a barrier of all ranks.
  Status run(std::span<const ZeroCopyTensor> tensors, ReduceOp op, transport::Overwriting& undo,
             const std::function<Status()>& barrier);

  /// Unpins the tensors. To be called before they change, even if nothing was offered.
  void unpin();

 private:
  /// The addresses of a tensor, in bytes from the start of its rank's arena.
  struct Place {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
  };
  /// One tensor of all ranks, with addresses in this process.
  struct Shared {
    const ZeroCopyTensor& mine;
    std::vector<const std::byte*> inputs;   // per rank
    std::vector<const std::byte*> outputs;  // per rank
    transport::Overwriting* undo;           // null if it is out of place
  };
  using OnPiece = std::function<void(std::size_t begin, std::size_t bytes)>;

  bool readable_everywhere() const;
  Result<std::vector<Shared>> find(std::span<const ZeroCopyTensor> tensors,
                                   transport::Overwriting& undo);
  Status reach(int rank, const Place& place, std::size_t bytes);
  Status each_piece(const Shared& tensor, int part, const OnPiece& on_piece) const;
  void reduce(const Shared& tensor, ReduceOp op, std::size_t begin, std::size_t bytes);
  Status check_pinned() const;

  transport::Mesh& mesh_;
  EagerAllreduce& eager_;
  const std::shared_ptr<transport::Arena> arena_;

  // State of the operation in flight.
  transport::OpTag tag_;
  transport::Fingerprint fingerprint_;
  std::vector<Place> offered_;  // empty: nothing is pinned
  Buffer scratch_;              // one piece
};

}  // namespace elastic::collectives
