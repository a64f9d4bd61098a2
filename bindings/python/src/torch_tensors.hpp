#pragma once

#include "tensors.hpp"

namespace elastic::python {

/// \returns whether `object` is a tensor of PyTorch. Does not import PyTorch.
bool is_torch_tensor(nb::handle object);

/// tensor_of for one. Asks the tensor itself, which takes a quarter of the time of DLPack.
Tensor torch_tensor(nb::handle object, Access access, const char* call, const char* what);

/// A tensor with the same memory, which it keeps also where `object` is given other memory, as
/// module.double() and `tensor.data = ...` do.
nb::object torch_alias(nb::handle object);

/// A new one-dimensional tensor in host memory, of the element type of `like`.
nb::object new_torch_tensor(nb::handle like, std::size_t count);

}  // namespace elastic::python
