#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives::nccl {

/// Whether all ranks have succeeded: an exchange of one byte, as a phase of an operation in which
/// the ranks have already met. A rank that is still at work sees early that another one has failed.
///
/// Each rank tells each other one, which takes the time of one message. In large views the bytes go
/// up and down a tree instead, in which a rank has at most nine neighbours: a "no" at once, a "yes"
/// when all ranks below have said it.
///
/// Owned by the thread that owns the mesh.
class Verdict {
 public:
  /// From this size of the view on there is a tree.
  static constexpr int kTreeFrom = 64;

  explicit Verdict(transport::Mesh& mesh, int tree_from = kTreeFrom);
  /// Abandons the operation on the mesh if the exchange has begun and is not finished.
  ~Verdict();
  Verdict(const Verdict&) = delete;
  Verdict& operator=(const Verdict&) = delete;

  /// Begins to receive. Makes links that are missing, and fails if that does. The phase of `tag` is
  /// at least kLater.
  Status begin(const transport::OpTag& tag);
  /// After that: looks whether some rank has said no, and passes it on. To be called between the
  /// mesh's progress while this rank works.
  bool has_failed();
  /// Says whether this rank has succeeded, and waits until all have said it. The same on all ranks.
  /// Fails like Mesh::run_until.
  Result<bool> all(bool mine);

 private:
  static constexpr int kBranches = 8;
  static constexpr std::byte kNo{0};
  static constexpr std::byte kYes{1};

  bool has_parent() const { return parent_ >= 0; }
  void pass_on();
  bool is_over() const;

  transport::Mesh& mesh_;
  int parent_ = -1;         // -1: this is the root, or there is no tree
  std::vector<int> peers_;  // its children; without a tree all other ranks
  const bool is_tree_;
  std::vector<std::byte> heard_;  // from each of `peers_`
  std::byte heard_above_{};
  std::optional<std::byte> own_;   // what this rank says of itself
  std::optional<std::byte> up_;    // what it says of itself and all below
  std::optional<std::byte> down_;  // what is said of all ranks; without a tree, by this rank
  bool begun_ = false;
};

}  // namespace elastic::collectives::nccl
