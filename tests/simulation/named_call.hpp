#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "contribution.hpp"
#include "coordinator/coordinator.hpp"
#include "scenario.hpp"

namespace elastic::simulation {

/// A named call, and the tensor that it is for.
class NamedCall {
 public:
  NamedCall(std::string name, Node self, Node most, std::int64_t salt, std::size_t elements)
      : name_(std::move(name)), self_(self), contribution_(self, most, salt, elements) {}

  /// It is made with another shape, type or operator than on the other workers.
  void differ(Difference how) {
    if (how == Difference::kShape) view_.count -= 1;
    if (how == Difference::kType) view_.dtype = DType::kF64;
    if (how == Difference::kOperator) op_ = ReduceOp::kMax;
  }

  Status submit(coordinator::Coordinator& coordinator) {
    auto work = coordinator.submit(name_, {view_}, op_);
    if (!work.ok()) return work.status();
    work_ = std::move(work).value();
    return {};
  }
  Result<Contributors> wait() const {
    work_->wait();
    return work_->outcome();
  }
  /// The program drops the handle. The tensor has to live until the call is complete.
  void drop() { work_.reset(); }

  /// The tensor's present data, and the same again.
  std::vector<std::int64_t> data() {
    return {contribution_.data().begin(), contribution_.data().end()};
  }
  void restore(const std::vector<std::int64_t>& data) {
    std::copy(data.begin(), data.end(), contribution_.data().begin());
  }

  const std::string& name() const { return name_; }
  const Contribution& contribution() const { return contribution_; }
  /// The tensor is as it was before the call.
  bool is_untouched() const {
    std::string wrong;
    return contribution_.decode(0, wrong) == only(self_) && wrong.empty();
  }

 private:
  const std::string name_;
  const Node self_;
  Contribution contribution_;
  TensorView view_ = contribution_.view();
  ReduceOp op_ = ReduceOp::kSum;
  std::shared_ptr<detail::WorkState> work_;
};

}  // namespace elastic::simulation
