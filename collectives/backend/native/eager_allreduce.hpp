#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/transport/mesh.hpp"
#include "collectives/transport/ring/eager_channel.hpp"

namespace elastic::collectives {

/// Eager allreduce of small data on one host: every rank copies its tensor to a slot for every
/// other rank (an EagerSlot), then reduces all tensors in rank order. One exchange, without frames.
///
/// Owned by the thread that runs the lane's operation.
class EagerAllreduce {
 public:
  explicit EagerAllreduce(transport::Mesh& mesh) : mesh_(mesh) {}

  /// Whether this rank has an eager channel to every other rank. To be called before `run`.
  bool find_channels();
  /// Size limit: it shrinks with the number of ranks, because a rank reads the tensors of all.
  std::size_t most_bytes() const;

  /// For an operation by another algorithm: posts its fingerprint to the ranks that wait for eager
  /// messages in `tag`, because this rank's frames may never reach them. `more`: further content.
  void post_fingerprint(const transport::OpTag& tag, const transport::Fingerprint& fingerprint,
                        std::span<const std::byte> more);
  /// Waits for every rank's message for `tag`, which has begun. Fails like a link.
  Status await(const transport::OpTag& tag, const transport::Fingerprint& fingerprint);
  /// The same before `tag` has begun. The mesh begins it only if the messages do not come within a
  /// spin.
  Status await_unbegun(const transport::OpTag& tag, const transport::Fingerprint& fingerprint);
  /// The message of another rank. Valid after `await`, in the same operation.
  const transport::EagerSlot& from(int rank) const {
    return *slots_[static_cast<std::size_t>(rank)];
  }
  std::span<const std::byte> content_from(int rank) const {
    return {from(rank).payload, static_cast<std::size_t>(from(rank).bytes)};
  }

  /// Performs the allreduce. `result` is as long as `input` and may be the same memory. Fails like
  /// a link. The mesh begins operation `tag` only if the messages do not arrive within a spin.
  Status run(const transport::OpTag& tag, const transport::Fingerprint& fingerprint,
             std::span<const std::byte> input, std::byte* result, const Reducer& reducer);

 private:
  bool all_here(const transport::OpTag& tag);
  bool come_soon(const transport::OpTag& tag);
  Status wait_on(const transport::OpTag& tag);
  Status check(const transport::Fingerprint& fingerprint) const;
  Status check_lengths(std::size_t bytes) const;
  void reduce(const std::byte* own, std::size_t bytes, std::byte* result,
              const Reducer& reducer) const;

  transport::Mesh& mesh_;
  std::vector<transport::EagerChannel*> channels_;  // per rank, null for this one
  std::vector<const transport::EagerSlot*> slots_;  // of the operation in flight, per rank
};

}  // namespace elastic::collectives
