#pragma once

#include <span>
#include <string>
#include <vector>

#include <elastic/error.hpp>

#include "tensors.hpp"

namespace elastic::python {

/// Tensors of float32 in host memory: parameters of an optimizer, or a gradient.
class FloatTensors {
 public:
  /// \throws nb::type_error, Error kInvalidArgument as tensors_of, and for another element type.
  FloatTensors(nb::sequence given, Access access, const char* call)
      : tensors_(tensors_of(given, access, call)) {
    for (const Tensor& tensor : tensors_) {
      const TensorView& view = tensor.view;
      if (view.dtype != DType::kF32 || view.device.kind != Device::Kind::kHost) {
        throw Error(ErrorCode::kInvalidArgument,
                    std::string(call) + ": tensors[" + std::to_string(spans_.size()) +
                        "] is not of float32 in host memory; pass .astype(numpy.float32) of it");
      }
      spans_.emplace_back(static_cast<float*>(view.data), view.count);
    }
    constant_.assign(spans_.begin(), spans_.end());
  }

  const std::vector<std::span<float>>& spans() const { return spans_; }
  std::span<const std::span<const float>> gradient() const { return constant_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::span<float>> spans_;
  std::vector<std::span<const float>> constant_;
};

}  // namespace elastic::python
