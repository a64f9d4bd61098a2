#include "coordinator/join_operation.hpp"

#include <utility>
#include <vector>

namespace elastic::coordinator {

JoinOperation::JoinOperation(int last, std::shared_ptr<int> result)
    : input_(last),
      allreduce_(std::vector{ConstTensorView{&input_, 1, DType::kI64}},
                 std::vector{TensorView{&output_, 1, DType::kI64}}, ReduceOp::kMax),
      result_(std::move(result)) {}

void JoinOperation::unpack(const Members& members, const collectives::Payload& payload) {
  allreduce_.unpack(members, payload);
  *result_ = static_cast<int>(output_);
}

}  // namespace elastic::coordinator
