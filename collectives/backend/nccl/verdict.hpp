#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.hpp"
#include "collectives/transport/mesh.hpp"

namespace elastic::collectives::nccl {

/// Whether all ranks are ready for the next operation, and whether all have succeeded in this one:
/// two exchanges of one byte, as a phase of an operation in which the ranks have already met. A
/// rank may say that it is ready while it is still at work, and hear there that all are, or that
/// one has failed.
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
  /// After that, says that this rank is ready for the next operation. It stays so.
  void say_ready();
  /// Whether all ranks are known to be ready. To be called between the mesh's progress while this
  /// rank works, like `has_failed`. After `all` it is the same on all ranks, unless one has failed.
  bool all_are_ready();
  /// Looks whether some rank has failed, and passes it on.
  bool has_failed();
  /// Says that this rank has failed, before it can call `all`.
  void say_failed();
  /// Says whether this rank has succeeded, and waits until all have said it. The same on all ranks.
  /// Fails like Mesh::run_until. `meanwhile` is called between looks at the links.
  Result<bool> all(bool mine, const std::function<void()>& meanwhile = {});

 private:
  static constexpr int kBranches = 8;
  static constexpr std::byte kNo{0};
  static constexpr std::byte kYes{1};
  /// The number of the message on each link, too.
  enum Question : std::size_t { kReady, kSuccess, kQuestions };
  struct Answers {
    std::optional<std::byte> own;   ///< what this rank says of itself
    std::optional<std::byte> up;    ///< what it says of itself and all below
    std::optional<std::byte> down;  ///< what is said of all ranks; without a tree, by this rank
    std::vector<std::byte> heard;   ///< from each of `peers_`
    std::byte heard_above{};
  };

  bool has_parent() const { return parent_ >= 0; }
  void say(Question question, std::byte answer);
  bool are_all(Question question) const;
  void pass_on();
  void pass_on(Question question);
  void say_up(Question question, std::byte answer);
  bool is_over() const;

  transport::Mesh& mesh_;
  int parent_ = -1;         // -1: this is the root, or there is no tree
  std::vector<int> peers_;  // its children; without a tree all other ranks
  const bool is_tree_;
  std::array<Answers, kQuestions> answers_;
  bool begun_ = false;
};

}  // namespace elastic::collectives::nccl
