#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "elastic/results.hpp"
#include "named_call.hpp"

namespace elastic::simulation {

/// Stands for elastic::StepGroup: the named allreduces of a step, which are committed together. The
/// decision which of them are summed again is the real one.
///
/// The program's own thread alone uses it.
class StepTensors {
 public:
  /// `mixes`: takes the sums as they are, over different contributors.
  StepTensors(coordinator::Coordinator& coordinator, bool mixes)
      : coordinator_(coordinator), mixes_(mixes) {}

  /// Keeps the input, and starts the sum in place.
  Status add(std::unique_ptr<NamedCall> call);
  /// Ends the step. Its error is that of the first tensor that failed; all are as they were then.
  Result<Contributors> wait();
  /// Those of the present step, until `clear`.
  std::vector<const NamedCall*> calls() const;
  bool sums_again() const { return sums_again_; }
  void clear();

 private:
  struct Tensor {
    std::unique_ptr<NamedCall> call;
    std::vector<std::int64_t> input;
    Status started;
  };

  bool finish(std::vector<Contributors>& contributors);
  void start_again(Tensor& tensor);

  coordinator::Coordinator& coordinator_;
  const bool mixes_;
  std::vector<Tensor> tensors_;
  Status failure_;
  bool sums_again_ = false;
};

}  // namespace elastic::simulation
