#include "coordinator/neutral_operation.hpp"

#include <utility>

#include "base/reduce_ops.hpp"
#include "collectives/kernels/neutral.hpp"

namespace elastic::coordinator {

NeutralAllreduce::NeutralAllreduce(const BucketContent& requests)
    : scaled_(!scales_nothing(requests.front()->scale)) {
  const TensorRequest& first = *requests.front();
  std::vector<TensorView> views;
  for (const auto& request : requests) {
    for (const TensorShape& shape : request->tensors) {
      const auto count = static_cast<std::size_t>(shape.count);
      tensors_.push_back(std::make_unique<std::byte[]>(count * size_of(shape.dtype)));
      views.push_back({tensors_.back().get(), count, shape.dtype});
      kernels::fill_neutral(shape.dtype, first.op, tensors_.back().get(), count);
    }
  }
  std::vector<ConstTensorView> inputs(views.begin(), views.end());
  allreduce_ = std::make_unique<AllreduceOperation>(std::move(inputs), std::move(views), first.op,
                                                    std::vector<collectives::Wire>(), first.scale);
}

/// A replay finds the neutral elements again: the result of an attempt that fails is in no tensor.
void NeutralAllreduce::pack(const Members& members, collectives::Payload& payload) {
  allreduce_->pack(members, payload);
  if (!scaled_) return;
  // A factor has multiplied them: of a minimum they are infinite, and have a sign.
  const collectives::Call call = allreduce_->call(members);
  for (const collectives::Section& section : call.sections) {
    kernels::fill_neutral(section.dtype, call.redop, payload.data.data() + section.offset,
                          section.count);
  }
}

std::unique_ptr<Operation> neutral_operation(const BucketContent& requests) {
  if (requests.front()->kind == kBarrierRequest) return std::make_unique<BarrierOperation>();
  return std::make_unique<NeutralAllreduce>(requests);
}

}  // namespace elastic::coordinator
