#pragma once

#include <memory>

#include <elastic/optimizers.hpp>

#include "float_tensors.hpp"

namespace elastic::python {

/// An optimizer of the library, and the parameters that it refers to.
template <typename Optimizer>
struct PythonOptimizer {
  PythonOptimizer(nb::sequence tensors, const typename Optimizer::Options& options,
                  const char* call)
      : parameters(std::move(tensors), Access::kWrite, call),
        optimizer(parameters.spans(), options) {}

  FloatTensors parameters;
  Optimizer optimizer;
};

}  // namespace elastic::python
