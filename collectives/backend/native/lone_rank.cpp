#include "collectives/backend/native/lone_rank.hpp"

#include "base/reduce_ops.hpp"
#include "collectives/kernels/reduce.hpp"

namespace elastic::collectives {
namespace {

void make_logical(DType dtype, std::byte* elements, std::size_t bytes) {
  kernels::reduce(dtype, ReduceOp::kLogicalOr)(elements, elements, elements,
                                               bytes / size_of(dtype));
}

}  // namespace

void complete_alone(const Call& call, Payload& payload) {
  if (!is_logical(call.redop)) return;
  for (const Section& section : call.sections) {
    make_logical(section.dtype, payload.data.data() + section.offset, bytes_of(section));
  }
  for (const ZeroCopyTensor& tensor : payload.zero_copy()) {
    make_logical(tensor.dtype, tensor.output, tensor.bytes());
  }
}

void complete_alone(const SmallCall& call, Payload& payload) {
  if (is_logical(call.redop)) make_logical(call.dtype, payload.data.data(), call.input.size());
}

}  // namespace elastic::collectives
