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
#include "collectives/backend/native/letter_allreduce.hpp"
#include "collectives/backend/payload.hpp"
#include "collectives/transport/mesh.hpp"
#include "collectives/transport/shm/arena.hpp"

namespace elastic::collectives {

/// Allreduce of tensors that lie in the arenas of ranks of one host. Each rank reduces one part of
/// each tensor, reading all ranks' inputs where they lie, and when all have, copies the other parts
/// from the others' outputs. The memory of others is read and never written.
///
/// What is read must not change meanwhile, and who has to change it, because his attempt failed,
/// does not wait for readers. So every rank says in shared memory for which operation its tensors
/// hold still, and takes that back before it touches them; who has read looks whether they still
/// do, and fails where not. docs/atomicity.md has the argument.
///
/// Owned by the thread that runs the lane's operation.
class SharedAllreduce {
 public:
  /// `arena` is this rank's; may be null.
  SharedAllreduce(transport::Mesh& mesh, LetterAllreduce& letters,
                  std::shared_ptr<transport::Arena> arena)
      : mesh_(mesh), letters_(letters), arena_(std::move(arena)) {}

  /// What this rank's letter for the operation is to say: where its tensors lie, which hold still
  /// from now on. Empty where not all of them lie in the arena, or another's cannot be read here.
  std::span<const std::byte> offer(const transport::OpTag& tag,
                                   const transport::Fingerprint& fingerprint,
                                   std::span<const DirectTensor> tensors);

  /// Whether all ranks have offered theirs: the same on all of them. Waits for the others' letters
  /// if this rank's said something. Fails like a link; the operation has begun.
  Result<bool> agreed();

  /// After `agreed`. `undo` is told of what is overwritten in place; `meet` returns when all ranks
  /// have called it.
  Status run(std::span<const DirectTensor> tensors, ReduceOp op, transport::Overwriting& undo,
             const std::function<Status()>& meet);

  /// The tensors hold still no longer. Before they change, whether anything was offered or not.
  void let_go();

 private:
  /// Where a tensor lies, in bytes from the start of its rank's arena.
  struct Place {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
  };
  /// A tensor as this operation sees it.
  struct Shared {
    const DirectTensor& mine;
    std::vector<const std::byte*> inputs;   // per rank
    std::vector<const std::byte*> outputs;  // likewise
    transport::Overwriting* undo;           // null if it is not in place
  };
  using OnPiece = std::function<void(std::size_t begin, std::size_t bytes)>;

  bool readable_everywhere() const;
  Result<std::vector<Shared>> find(std::span<const DirectTensor> tensors,
                                   transport::Overwriting& undo);
  Status reach(int rank, const Place& place, std::size_t bytes);
  Status each_piece(const Shared& tensor, int part, const OnPiece& on_piece) const;
  void reduce(const Shared& tensor, ReduceOp op, std::size_t begin, std::size_t bytes);
  Status check_held() const;

  transport::Mesh& mesh_;
  LetterAllreduce& letters_;
  const std::shared_ptr<transport::Arena> arena_;

  // Of the operation in flight.
  transport::OpTag tag_;
  transport::Fingerprint fingerprint_;
  std::vector<Place> offered_;  // empty: nothing is held still
  Buffer scratch_;              // a piece
};

}  // namespace elastic::collectives
