#include "runtime/tensor_check.hpp"

#include <string>

#include "elastic/error.hpp"

namespace elastic::runtime {

void check(const ConstTensorView& tensor) {
  if (tensor.data == nullptr && tensor.count > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "a tensor of " + std::to_string(tensor.count) + " elements lies at a null pointer");
  }
}

void check_host(const ConstTensorView& tensor, const char* what) {
  check(tensor);
  if (!device::on_device(tensor)) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(what) +
                  " takes tensors in host memory only, and was given one on CUDA "
                  "device " +
                  std::to_string(tensor.device.index) + ": copy it to the host before the call");
}

void check_no_stream(const CudaStream& stream) {
  if (stream.handle == nullptr) return;
  throw Error(ErrorCode::kInvalidArgument,
              "a CUDA stream was given, and no tensor on a CUDA device: leave the stream out, or "
              "say where the tensor lies (elastic::cuda_view)");
}

}  // namespace elastic::runtime
