// In the place of cuda_model.cpp where cmake found no CUDA.
#include <stdexcept>

#include "examples/digits/cuda/cuda_model.hpp"

namespace digits {

int cuda_devices() {
  throw std::runtime_error(
      "this train_digits was built without CUDA: cmake found no nvcc of CUDA 12 or later that "
      "works "
      "(it says why), or ELASTIC_CUDA is OFF");
}

std::unique_ptr<Model> make_cuda_model(const ModelOptions&, std::span<const Sample>, int) {
  cuda_devices();
  return nullptr;
}

}  // namespace digits
