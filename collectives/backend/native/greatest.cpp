#include "collectives/backend/native/greatest.hpp"

#include "collectives/kernels/reduce.hpp"

namespace elastic::collectives {

Status take_greatest(Executor& executor, PlanCache& plans, std::span<std::int64_t> values) {
  Reducer greatest;
  greatest.reduce = kernels::reduce(DType::kI64, ReduceOp::kMax);
  greatest.reduce_last = greatest.reduce;
  greatest.element = sizeof(std::int64_t);
  greatest.dtype = DType::kI64;
  return executor.run_alone(plans.small_allreduce(values.size_bytes()),
                            PlanBuffers::in_place(std::as_writable_bytes(values).data()), greatest);
}

}  // namespace elastic::collectives
