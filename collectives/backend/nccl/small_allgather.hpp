#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives::nccl {

/// An allgather of one small message from each rank, as a phase of an operation in which the ranks
/// have already met. The constructor begins to receive, so that a rank can work on something else
/// and still see the messages of the other ranks.
///
/// Owned by the thread that owns the mesh.
class SmallAllgather {
 public:
  /// `bytes`: size of each message, the same on all ranks. The phase of `tag` is at least kLater.
  SmallAllgather(transport::Mesh& mesh, const transport::OpTag& tag, std::size_t bytes);
  /// Abandons the operation on the mesh if the round is not finished.
  ~SmallAllgather();
  SmallAllgather(const SmallAllgather&) = delete;
  SmallAllgather& operator=(const SmallAllgather&) = delete;

  void send(std::span<const std::byte> mine);
  /// After `send`: waits for the messages of all ranks. Fails like Mesh::run_until.
  Status finish();

  /// Instead of both, for messages of one byte: whether all ranks say yes, which is not 0.
  Result<bool> all(bool mine);

  bool has_come(int rank) const;
  /// The message of `rank`, which has come, or after `send` that of this rank.
  std::span<const std::byte> of(int rank) const;

 private:
  bool all_done() const;
  std::span<std::byte> place(int rank);

  transport::Mesh& mesh_;
  const std::size_t bytes_;
  std::vector<std::byte> messages_;  // by rank
  bool finished_ = false;
};

}  // namespace elastic::collectives::nccl
