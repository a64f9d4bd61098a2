#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "elastic/results.hpp"

namespace elastic::training {

/// Which member computes which virtual workers of a step, and which of them are not in its sum yet.
/// A function of what all members know alike: virtual workers, members, contributors.
class WorkAssignment {
 public:
  /// Assigns virtual workers 0 to count-1 in blocks as equal as possible, longer ones first.
  /// `members` are not empty, and in rank order.
  WorkAssignment(std::size_t count, std::span<const WorkerId> members);

  /// Those that `member` is to contribute to the next collective, ascending.
  std::vector<std::size_t> of(WorkerId member) const;

  /// A collective is complete: the virtual workers of its contributors are in it. Those of others
  /// are assigned to the contributors; returns how many virtual workers that are.
  std::size_t complete(std::span<const WorkerId> contributors);

  /// Nothing is in, as for another collective over all; every member keeps its last virtual
  /// workers.
  void reopen();

 private:
  struct VirtualWorker {
    WorkerId member = 0;
    bool open = true;
  };
  static void assign(const std::vector<VirtualWorker*>& those, std::span<const WorkerId> members);

  std::vector<VirtualWorker> list_;
};

}  // namespace elastic::training
