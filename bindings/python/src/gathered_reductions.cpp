// Reductions that gather the contributions of all members: values with indices, and sparse rows.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <elastic/minloc.hpp>
#include <elastic/sparse_allreduce.hpp>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "given_op.hpp"
#include "new_arrays.hpp"
#include "taken_result.hpp"
#include "tensors.hpp"
#include "waiting.hpp"
#include "work.hpp"

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
  const Tensor kept_values = tensor_of(values, Access::kWrite, name, "array of values");
  const Tensor kept_indices = tensor_of(indices, Access::kWrite, name, "array of indices");
  const auto places = indices_of(kept_indices, name);
  return waiting([&] { return call(context, kept_values.view, places); });
}

Contributors minloc(Collectives& context, nb::handle values, nb::handle indices) {
  return locate(context, &elastic::minloc, "minloc", values, indices);
}

Contributors maxloc(Collectives& context, nb::handle values, nb::handle indices) {
  return locate(context, &elastic::maxloc, "maxloc", values, indices);
}

/// Rows that Python gave. Keeps their arrays.
class GivenRows {
 public:
  GivenRows(nb::handle indices, nb::handle values, std::size_t width, std::size_t rows,
            const char* call)
      : indices_(tensor_of(indices, Access::kRead, call, "array of indices")),
        values_(tensor_of(values, Access::kRead, call, "array of values")),
        view_{indices_of(indices_, call), values_.view, width, rows} {}

  const SparseRowsView& view() const { return view_; }
  /// Indices and values of the kinds that were given.
  nb::tuple like_these(const SparseRows& sums) const {
    return nb::make_tuple(
        new_tensor_of(indices_, std::as_bytes(std::span<const std::int64_t>(sums.indices))).object,
        new_tensor_of(values_, sums.values).object);
  }

 private:
  Tensor indices_;
  Tensor values_;
  SparseRowsView view_;
};

nb::tuple sparse_allreduce(Collectives& context, nb::handle indices, nb::handle values,
                           std::size_t width, std::size_t rows, GivenOp given_op) {
  constexpr const char* kCall = "sparse_allreduce";
  const ReduceOp op = given_op.in(kCall);
  const GivenRows given(indices, values, width, rows, kCall);
  const SparseRows sums =
      waiting([&] { return elastic::sparse_allreduce(context, given.view(), op); });
  const nb::tuple made = given.like_these(sums);
  return nb::make_tuple(made[0], made[1], sums.contributors);
}

/// Indices, values, width and rows of a tensor.
using SeveralRows = std::vector<std::tuple<nb::object, nb::object, std::size_t, std::size_t>>;

nb::tuple grouped_sparse_allreduce(Collectives& context, const SeveralRows& tensors,
                                   GivenOp given_op) {
  constexpr const char* kCall = "grouped_sparse_allreduce";
  const ReduceOp op = given_op.in(kCall);
  std::vector<GivenRows> given;
  for (const auto& [indices, values, width, rows] : tensors) {
    given.emplace_back(indices, values, width, rows, kCall);
  }
  std::vector<SparseRowsView> views;
  for (const GivenRows& each : given) views.push_back(each.view());
  const auto sums = waiting([&] { return elastic::grouped_sparse_allreduce(context, views, op); });
  nb::list made;
  for (std::size_t i = 0; i < sums.size(); ++i) made.append(given[i].like_these(sums[i]));
  return nb::make_tuple(made, sums.front().contributors);
}

/// The rows are copied. The operation keeps the arrays to make others of their kind.
PendingWork sparse_allreduce_async(Collectives& context, nb::handle indices, nb::handle values,
                                   std::size_t width, std::size_t rows, GivenOp given_op,
                                   const std::optional<std::string>& name) {
  constexpr const char* kCall = "sparse_allreduce_async";
  const ReduceOp op = given_op.in(kCall);
  auto given = std::make_shared<GivenRows>(indices, values, width, rows, kCall);
  PendingSparseRows pending = waiting([&] {
    return name ? elastic::sparse_allreduce_async(context, *name, given->view(), op)
                : elastic::sparse_allreduce_async(context, given->view(), op);
  });
  Work work = pending.work();
  return PendingWork(std::move(work), {}, [given, pending = std::move(pending)] {
    return given->like_these(waiting([&] { return pending.wait(); }));  // it is complete
  });
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
  define(module, context, "_grouped_sparse_allreduce", &grouped_sparse_allreduce, arg("tensors"),
         arg("op"));
  define(module, context, "_sparse_allreduce_async", &sparse_allreduce_async, arg("indices").none(),
         arg("values").none(), arg("width"), arg("rows"), arg("op"), arg("name").none());
}

}  // namespace elastic::python
