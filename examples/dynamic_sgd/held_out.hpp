#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "examples/digits/dataset.hpp"
#include "examples/digits/network.hpp"

namespace dynamic_sgd {

struct Evaluation {
  double loss = 0;      ///< mean cross entropy, in nats
  double accuracy = 0;  ///< from 0 to 1
};

/// The samples that no worker trains with, laid out so that the network sees all of them at once:
/// an evaluation after every step takes less time than the steps.
class HeldOut {
 public:
  explicit HeldOut(std::span<const digits::Sample> samples);

  Evaluation evaluate(const digits::Parameters& weights);

 private:
  std::size_t count_;
  std::vector<float> pixels_;   // [kPixels][count_]
  std::vector<float> hidden_;   // [kHidden][count_]
  std::vector<float> outputs_;  // [kOutputs][count_]
  std::vector<int> labels_;
};

}  // namespace dynamic_sgd
