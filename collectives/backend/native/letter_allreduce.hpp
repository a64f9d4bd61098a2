#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "collectives/backend/native/executor.hpp"
#include "collectives/transport/mesh.hpp"
#include "collectives/transport/ring/mailbox.hpp"

namespace elastic::collectives {

/// Allreduce of small data among ranks of one host: everybody posts a letter with all of it to
/// everybody, and reduces all letters in rank order. One exchange, without frames.
///
/// Owned by the thread that runs the lane's operation.
class LetterAllreduce {
 public:
  explicit LetterAllreduce(transport::Mesh& mesh) : mesh_(mesh) {}

  /// Whether this rank has a mailbox to every other. Before `run`.
  bool find_mailboxes();
  /// Up to here letters are the fastest way: what a rank reads grows with the number of ranks.
  std::size_t most_bytes() const;

  /// For an operation that goes another way: tells those who wait for letters in `tag` what this
  /// rank has called, because its frames may never come to them; and what else there is to say.
  void tell(const transport::OpTag& tag, const transport::Fingerprint& fingerprint,
            std::span<const std::byte> more);
  /// Waits for everybody's letter for `tag`, which has begun. Fails like a link.
  Status await(const transport::OpTag& tag, const transport::Fingerprint& fingerprint);
  /// From another rank; after `await`, in the same operation.
  const transport::Letter& from(int rank) const {
    return *letters_[static_cast<std::size_t>(rank)];
  }

  /// `result`, as long as `input`, may be the same memory. Fails like a link; the mesh begins
  /// operation `tag` only if the letters keep it waiting.
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
  std::vector<transport::Mailbox*> mailboxes_;     // per rank, null for this one
  std::vector<const transport::Letter*> letters_;  // of the operation in flight, per rank
};

}  // namespace elastic::collectives
