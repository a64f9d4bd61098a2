// Reductions that gather the contributions of all members: values with indices, and sparse rows.
#include <cstdint>
#include <span>
#include <string>

#include <elastic/minloc.hpp>
#include <elastic/sparse_allreduce.hpp>

#include "bindings.hpp"
#include "given_op.hpp"
#include "new_arrays.hpp"
#include "taken_result.hpp"
#include "tensors.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

/// The int64 elements of an array of indices.
std::span<std::int64_t> indices_of(const Tensor& tensor, const char* call) {
  if (tensor.view.dtype != DType::kI64) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) +
                    ": the indices are no int64; convert them, such as by numpy.asarray(indices, "
                    "numpy.int64)");
  }
  if (tensor.view.device.kind != Device::Kind::kHost) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(call) +
                    ": the indices lie on a device; give them in host memory, as "
                    "tensor.cpu()");
  }
  return {static_cast<std::int64_t*>(tensor.view.data), tensor.view.count};
}

using Locate = Contributors (*)(Collectives&, TensorView, std::span<std::int64_t>);

Contributors locate(Collectives& context, Locate call, const char* name, nb::handle values,
                    nb::handle indices) {
  const Tensor kept_values = tensor_of(values, Access::kWrite, name, "values");
  const Tensor kept_indices = tensor_of(indices, Access::kWrite, name, "indices");
  const auto places = indices_of(kept_indices, name);
  return waiting([&] { return call(context, kept_values.view, places); });
}

Contributors minloc(Collectives& context, nb::handle values, nb::handle indices) {
  return locate(context, &elastic::minloc, "minloc", values, indices);
}

Contributors maxloc(Collectives& context, nb::handle values, nb::handle indices) {
  return locate(context, &elastic::maxloc, "maxloc", values, indices);
}

nb::tuple sparse_allreduce(Collectives& context, nb::handle indices, nb::handle values,
                           std::size_t width, std::size_t rows, GivenOp given_op) {
  constexpr const char* kCall = "sparse_allreduce";
  const ReduceOp op = given_op.in(kCall);
  const Tensor places = tensor_of(indices, Access::kRead, kCall, "indices");
  const Tensor given = tensor_of(values, Access::kRead, kCall, "values");
  const SparseRowsView view{indices_of(places, kCall), given.view, width, rows};
  const SparseRows sums = waiting([&] { return elastic::sparse_allreduce(context, view, op); });
  return nb::make_tuple(
      new_tensor_of(places, std::as_bytes(std::span<const std::int64_t>(sums.indices))).object,
      new_tensor_of(given, sums.values).object, sums.contributors);
}

}  // namespace

void bind_gathered_reductions(nb::module_& module, CollectivesClass& context) {
  using nb::arg;
  define(
      module, context, "minloc", &minloc, arg("values").none(), arg("indices").none(),
      R"(Gives all members the least value of all, element by element, with the index that came with it.

Args:
    values: a contiguous array in host memory, with as many elements on all members.
    indices: an array of int64 with an index for each value: any numbers of the program's own.

Both are overwritten. Among equal values the one with the smallest index is taken; NaN comes before
every number. One operation carries both, so they have the same contributors after a death. All
pairs go to all members: it suits small arrays.

Returns:
    The Contributors: the workers whose values are in the result.

Raises:
    MismatchError: members gave another number or type of values; on all members.
    InvalidArgumentError: the values are not as many as the indices, or these are no int64.)");
  define(module, context, "maxloc", &maxloc, arg("values").none(), arg("indices").none(),
         "As ``minloc``, with the greatest value of all members.");
  define(module, context, "_sparse_allreduce", &sparse_allreduce, arg("indices").none(),
         arg("values").none(), arg("width"), arg("rows"), arg("op"));
}

}  // namespace elastic::python
