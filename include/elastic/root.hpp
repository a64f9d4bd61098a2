#pragma once

#include <optional>

#include "elastic/results.hpp"

namespace elastic {

/// The root of a collective: a rank of the present view, or a worker.
///
/// A rank means the worker that has it when the call begins on its member; that worker stays the
/// root through view changes. A rank that was computed earlier may be another worker's by then, on
/// one member before another, which ends in kMismatch: name the worker for such roots.
class Root {
 public:
  /// The worker that has `rank` in the present view.
  constexpr Root(int rank) : rank_(rank) {}  // a rank is given as it is: gather(block, 0)
  /// A worker's id is no rank: give `worker(id)`. A rank of another type than int has to be cast.
  constexpr Root(WorkerId) = delete;
  /// \returns the root that is `id`, whatever becomes of the ranks.
  static constexpr Root worker(WorkerId id) {
    Root root(-1);
    root.worker_ = id;
    return root;
  }

  /// \returns the rank; meaningless for a worker.
  constexpr int rank() const { return rank_; }
  /// \returns the worker, if one was named.
  constexpr const std::optional<WorkerId>& worker() const { return worker_; }

 private:
  int rank_;
  std::optional<WorkerId> worker_;
};

}  // namespace elastic
