// Collectives, on the default context and as methods of Context and Group.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "errors.hpp"
#include "given_op.hpp"
#include "taken_result.hpp"
#include "tensors.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

/// A number of Python, which comes back as one.
std::optional<nb::object> allreduce_number(Collectives& context, nb::handle value, ReduceOp op) {
  if (PyBool_Check(value.ptr())) {
    return nb::cast(waiting([&, sent = value.is(Py_True)] { return context.allreduce(sent, op); }));
  }
  if (PyLong_Check(value.ptr())) {
    std::int64_t sent = 0;
    if (!nb::try_cast(value, sent, false)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "allreduce: the number " + text_of(value) + " has more than 64 bits");
    }
    return nb::cast(waiting([&] { return context.allreduce(sent, op); }));
  }
  if (PyFloat_Check(value.ptr())) {
    const auto sent = nb::cast<double>(value);
    return nb::cast(waiting([&] { return context.allreduce(sent, op); }));
  }
  return std::nullopt;
}

nb::object allreduce(Collectives& context, nb::handle tensor, GivenOp given_op, nb::handle out,
                     double prescale, double postscale) {
  const ReduceOp op = given_op.in("allreduce");
  const Scale scale(prescale, postscale);
  if (out.is_none()) {
    if (scale == Scale(1, 1)) {
      if (auto number = allreduce_number(context, tensor, op)) return *std::move(number);
    }
    const Tensor both = tensor_of(tensor, Access::kWrite, "allreduce", "tensor");
    return nb::cast(waiting([&] { return context.allreduce(both.view, op, scale, both.stream); }));
  }
  const Tensor input = tensor_of(tensor, Access::kRead, "allreduce", "tensor");
  const Tensor output = tensor_of(out, Access::kWrite, "allreduce", "out");
  const CudaStream stream = stream_of(input, output);
  return nb::cast(
      waiting([&] { return context.allreduce(input.view, output.view, op, scale, stream); }));
}

Contributors grouped_allreduce(Collectives& context, nb::sequence tensors, GivenOp given_op,
                               double prescale, double postscale) {
  const ReduceOp op = given_op.in("grouped_allreduce");
  const std::vector<Tensor> given = tensors_of(tensors, Access::kWrite, "grouped_allreduce");
  const std::vector<TensorView> views = views_of(given);
  return waiting([&] {
    return context.grouped_allreduce(views, op, Scale(prescale, postscale), stream_of(given));
  });
}

Contributors broadcast(Collectives& context, nb::handle tensor, int root) {
  const Tensor given = tensor_of(tensor, Access::kWrite, "broadcast", "tensor");
  return waiting([&] { return context.broadcast(given.view, root, given.stream); });
}

Contributors broadcast_from(Collectives& context, nb::handle tensor, WorkerId root) {
  const Tensor given = tensor_of(tensor, Access::kWrite, "broadcast_from", "tensor");
  return waiting([&] { return context.broadcast_from(given.view, root, given.stream); });
}

nb::tuple allgather(Collectives& context, nb::handle block, const Row& row) {
  const Tensor given = tensor_of(block, Access::kRead, "allgather", "block");
  NewBlocks result(given);
  return result.with(waiting([&] {
    return context.allgather(given.view, Collectives::TakeGathered(std::ref(result)), given.stream,
                             row);
  }));
}

nb::tuple allgather_into(Collectives& context, nb::handle block, nb::handle out, const Row& row) {
  const Tensor input = tensor_of(block, Access::kRead, "allgather", "block");
  const Tensor output = tensor_of(out, Access::kWrite, "allgather", "out");
  const CudaStream stream = stream_of(input, output);
  GatheredBlocks result =
      waiting([&] { return context.allgather(input.view, output.view, stream, row); });
  return nb::make_tuple(result.count, result.counts, result.contributors);
}

nb::tuple reduce_scatter(Collectives& context, nb::handle data, GivenOp given_op) {
  const ReduceOp op = given_op.in("reduce_scatter");
  const Tensor given = tensor_of(data, Access::kRead, "reduce_scatter", "tensor");
  NewPart result(given);
  return result.with(waiting([&] {
    return context.reduce_scatter(given.view, op, Collectives::TakeScattered(std::ref(result)),
                                  given.stream);
  }));
}

nb::tuple reduce_scatter_into(Collectives& context, nb::handle data, nb::handle out,
                              GivenOp given_op) {
  const ReduceOp op = given_op.in("reduce_scatter");
  const Tensor input = tensor_of(data, Access::kRead, "reduce_scatter", "tensor");
  const Tensor output = tensor_of(out, Access::kWrite, "reduce_scatter", "out");
  const CudaStream stream = stream_of(input, output);
  const ScatteredPart part =
      waiting([&] { return context.reduce_scatter(input.view, output.view, op, stream); });
  return nb::make_tuple(part.count, part.offset, part.contributors);
}

Contributors barrier(Collectives& context) {
  return waiting([&] { return context.barrier(); });
}

}  // namespace

void bind_collectives(nb::module_& module, CollectivesClass& context) {
  using nb::arg;
  const auto sum = arg("op") = ReduceOp::kSum;
  const auto prescale = arg("prescale") = 1.0;
  const auto postscale = arg("postscale") = 1.0;
  define(module, context, "allreduce", &allreduce, arg("tensor").none(), sum,
         arg("out") = nb::none(), nb::kw_only(), prescale, postscale,
         R"(Combines the tensors of all members element by element, and gives the result to all.

Args:
    tensor: a contiguous array of any shape, the same on all members; overwritten by the
        result unless ``out`` is given. Or a number, which is returned combined.
    op: ReduceOp.SUM, AVERAGE, MIN, MAX or PRODUCT. AVERAGE divides by the number of workers
        that contributed. BIT_AND, BIT_OR, BIT_XOR for integers and bools; LOGICAL_AND,
        LOGICAL_OR, LOGICAL_XOR, which give 0 or 1; ADASUM, the adaptive sum of floats, and
        HIERARCHICAL_ADASUM, that of the averages of the hosts.
    out: an array of the same count and element type that receives the result.
    prescale: multiplies the tensor of each member before they are combined, if they are floats.
    postscale: multiplies the result; under AVERAGE after the division.

Returns:
    The Contributors: the workers whose tensors are in the result. For a number: the result.

Raises:
    MismatchError: members made different calls; on all of them, and the job goes on.
    InvalidArgumentError: the tensor is not contiguous, is read-only, or has no element type
        of elastic.
    EvictedError, RemovedError, StoppedError, BelowMinimumError, TimeoutError: the training
        ends; ``run`` sees to the first three.

If a member dies, the call returns the right result to the others. It was computed from
exactly the members before the death or exactly the survivors, and is bit-identical on all.)");
  define(module, context, "grouped_allreduce", &grouped_allreduce, arg("tensors"), sum,
         nb::kw_only(), prescale, postscale,
         "Allreduces several tensors in place as one unit: after a failure either all of them hold "
         "the\nresults over the same contributors, or none was changed.");
  define(module, context, "broadcast", &broadcast, arg("tensor").none(), arg("root"),
         "Copies the tensor of rank ``root`` to all members, in place.\n\nRaises:\n    "
         "RootLostError: the root died before any survivor had its data; call again.");
  define(module, context, "broadcast_from", &broadcast_from, arg("tensor").none(), arg("root"),
         "``broadcast`` from a worker, which is the same one whatever becomes of the ranks: for "
         "roots that\nwere chosen earlier, and for several broadcasts from one root. ``root`` is "
         "one of ``members().workers``.\n\nRaises:\n    RootLostError: as ``broadcast``, and if "
         "the worker is no member.");
  define(module, context, "_allgather", &allgather, arg("block").none(), arg("row"));
  define(module, context, "_allgather_into", &allgather_into, arg("block").none(), arg("out"),
         arg("row"));
  define(module, context, "_reduce_scatter", &reduce_scatter, arg("tensor").none(), sum);
  define(module, context, "_reduce_scatter_into", &reduce_scatter_into, arg("tensor").none(),
         arg("out"), sum);
  define(module, context, "barrier", &barrier,
         "Waits until every member has called it, and returns the Contributors.");
}

}  // namespace elastic::python
