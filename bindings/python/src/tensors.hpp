#pragma once

#include <cstddef>
#include <vector>

#include <elastic/types.hpp>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "text.hpp"

namespace elastic::python {

namespace nb = nanobind;

/// The use that a call makes of a tensor.
enum class Access : std::uint8_t { kRead, kWrite };

/// A tensor that Python has given: an array of NumPy, a tensor of PyTorch, or anything with the
/// buffer protocol or DLPack. Its memory lives as long as this does.
struct Tensor {
  TensorView view;
  CudaStream stream;       ///< of PyTorch, for tensors on a device
  nb::object object;       ///< what was given; tensors of PyTorch keep their memory by it
  nb::ndarray<> exported;  ///< of all others: the export of their memory
};

/// Finds out where the elements of `object` lie. `call` and `what` are for messages, such as
/// "allreduce" and "tensor".
/// \throws nb::type_error: not a tensor. Error kInvalidArgument: the elements are not contiguous,
/// cannot be written, or are of no type that elastic has; the message says what to do.
Tensor tensor_of(nb::handle object, Access access, const char* call, const char* what);

/// The beginning of a message: "the tensor", and names as they are: "out", "tensors[0]".
std::string subject(const std::string& what);

/// Keeps the memory itself, for a call that does not wait: what the program does with its own
/// object does not matter then.
Tensor kept(Tensor tensor);

/// tensor_of for each element of a list or tuple, named "tensors[0]" and so on.
std::vector<Tensor> tensors_of(nb::sequence objects, Access access, const char* call);

/// The views of `tensors`, which must outlive them.
std::vector<TensorView> views_of(const std::vector<Tensor>& tensors);

/// The stream of those that lie on a device.
CudaStream stream_of(const std::vector<Tensor>& tensors);

/// Makes a new one-dimensional array of the kind and element type of `like`: PyTorch's for tensors
/// of PyTorch, NumPy's for everything else.
Tensor new_tensor(const Tensor& like, std::size_t count);

}  // namespace elastic::python
