#include "runtime/tensor_check.hpp"

#include <string>

#include "elastic/error.hpp"

namespace elastic::runtime {

void check(const ConstTensorView& tensor) {
  if (tensor.device.kind != Device::Kind::kHost) {
    throw Error(ErrorCode::kInvalidArgument, "device tensors need a GPU backend; none is built in");
  }
  if (tensor.data == nullptr && tensor.count > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "a tensor of " + std::to_string(tensor.count) + " elements lies at a null pointer");
  }
}

}  // namespace elastic::runtime
