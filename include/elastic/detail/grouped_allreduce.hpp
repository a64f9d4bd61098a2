#pragma once

#include <functional>
#include <span>

#include "elastic/context.hpp"
#include "elastic/results.hpp"
#include "elastic/types.hpp"

namespace elastic::detail {

/// A function that combines tensors of all workers as one unit, as Context::grouped_allreduce does.
using GroupedAllreduce = std::function<Contributors(std::span<const TensorView>, ReduceOp)>;

/// That of `context`, which must outlive it.
inline GroupedAllreduce grouped_allreduce_of(Context& context) {
  return [&context](std::span<const TensorView> tensors, ReduceOp op) {
    return context.grouped_allreduce(tensors, op);
  };
}

}  // namespace elastic::detail
