#pragma once

#include <functional>
#include <vector>

#include <elastic/work.hpp>
#include <nanobind/nanobind.h>

#include "tensors.hpp"

namespace elastic::python {

/// An asynchronous operation with its tensors, whose memory it keeps until the operation is
/// complete, also if Python forgets it before.
class PendingWork {
 public:
  /// Makes the result of the complete operation, once, with the GIL: a tuple.
  using Result = std::function<nb::object()>;

  PendingWork(Work work, std::vector<Tensor> tensors, Result result = {});
  PendingWork(PendingWork&&) = default;
  PendingWork(const PendingWork&) = delete;
  PendingWork& operator=(PendingWork&&) = delete;
  ~PendingWork();

  const Work& work() const noexcept { return work_; }
  /// Forgets the tensors, if the operation is complete.
  void release_if_complete();
  /// Makes the result besides the contributors, which only the first call has.
  nb::object take_result();

 private:
  Work work_;
  std::vector<Tensor> tensors_;
  Result result_;
};

}  // namespace elastic::python
