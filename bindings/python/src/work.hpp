#pragma once

#include <vector>

#include <elastic/work.hpp>

#include "tensors.hpp"

namespace elastic::python {

/// An asynchronous operation with its tensors, whose memory it keeps until the operation is
/// complete, also if Python forgets it before.
class PendingWork {
 public:
  PendingWork(Work work, std::vector<Tensor> tensors);
  PendingWork(PendingWork&&) = default;
  PendingWork(const PendingWork&) = delete;
  PendingWork& operator=(PendingWork&&) = delete;
  ~PendingWork();

  const Work& work() const noexcept { return work_; }
  /// Forgets the tensors, if the operation is complete.
  void release_if_complete();

 private:
  Work work_;
  std::vector<Tensor> tensors_;
};

}  // namespace elastic::python
