#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include <elastic/error.hpp>
#include <elastic/types.hpp>
#include <torch/torch.h>

namespace elastic::libtorch {

namespace detail {

[[noreturn]] inline void refuse(std::string_view name, const std::string& rest) {
  throw Error(ErrorCode::kInvalidArgument, std::string(name) + " " + rest);
}

template <typename T>
std::string text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

inline DType dtype(const ::torch::Tensor& tensor, std::string_view name) {
  switch (tensor.scalar_type()) {
    case ::torch::kFloat16:
      return DType::kF16;
    case ::torch::kBFloat16:
      return DType::kBF16;
    case ::torch::kFloat32:
      return DType::kF32;
    case ::torch::kFloat64:
      return DType::kF64;
    case ::torch::kInt8:
      return DType::kI8;
    case ::torch::kUInt8:
      return DType::kU8;
    case ::torch::kInt16:
      return DType::kI16;
    case ::torch::kInt32:
      return DType::kI32;
    case ::torch::kInt64:
      return DType::kI64;
    case ::torch::kBool:
      return DType::kBool;
    default:
      refuse(name, "has elements of type " + text(tensor.scalar_type()) +
                       ", which collectives do not take; convert it, as by "
                       "tensor.to(torch::kFloat32)");
  }
}

inline Device device(const ::torch::Tensor& tensor, std::string_view name) {
  if (tensor.device().is_cpu()) return {};
  if (tensor.device().is_cuda()) return {Device::Kind::kCuda, tensor.device().index()};
  refuse(name, "lies on device " + text(tensor.device()) +
                   "; collectives take tensors on the CPU and on CUDA devices: copy it by "
                   "tensor.cpu()");
}

}  // namespace detail

/// Views a tensor's elements for a collective or a State. On a CUDA device, give the call the
/// stream that makes the tensor.
/// \param name what errors call it.
/// \returns the elements, which the tensor must outlive.
/// \throws Error kInvalidArgument: the tensor is undefined, sparse or not contiguous, requires a
///   gradient while autograd records, or has another element type or device than elastic knows.
inline TensorView view(const ::torch::Tensor& tensor, std::string_view name = "the tensor") {
  if (!tensor.defined()) detail::refuse(name, "is undefined; give it elements first");
  if (tensor.layout() != ::torch::kStrided) {
    detail::refuse(name, "has the layout " + detail::text(tensor.layout()) +
                             "; collectives take dense tensors: convert it by tensor.to_dense()");
  }
  const DType dtype = detail::dtype(tensor, name);
  const Device device = detail::device(tensor, name);
  if (!tensor.is_contiguous()) {
    detail::refuse(name, "has gaps or another order of elements in memory (sizes " +
                             detail::text(tensor.sizes()) + ", strides " +
                             detail::text(tensor.strides()) +
                             "); make one without by tensor.contiguous()");
  }
  if (tensor.requires_grad() && ::torch::GradMode::is_enabled()) {
    detail::refuse(name,
                   "requires a gradient, and autograd does not see what a collective writes; give "
                   "tensor.detach(), or call under torch::NoGradGuard");
  }
  return {tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), dtype, device};
}

}  // namespace elastic::libtorch
