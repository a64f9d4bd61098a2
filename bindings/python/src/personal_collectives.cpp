// Collectives whose result differs by rank: alltoall, gather, scatter, reduce, scan and exscan.
#include <functional>
#include <string>

#include "bindings.hpp"
#include "given_blocks.hpp"
#include "given_op.hpp"
#include "taken_result.hpp"
#include "tensors.hpp"
#include "waiting.hpp"

namespace elastic::python {

namespace {

nb::tuple alltoall(Collectives& context, nb::handle tensor, const GivenCounts& counts,
                   const GivenWorkers& to, const Row& row) {
  const GivenBlocks blocks(tensor, counts, to, row, "alltoall");
  NewBlocks result(blocks.data);
  return result.with(waiting([&] {
    return context.alltoall(blocks.view(), Collectives::TakeGathered(std::ref(result)),
                            blocks.data.stream);
  }));
}

nb::tuple alltoall_into(Collectives& context, nb::handle tensor, nb::handle out,
                        const GivenCounts& counts, const GivenWorkers& to, const Row& row) {
  const GivenBlocks blocks(tensor, counts, to, row, "alltoall");
  const Tensor output = tensor_of(out, Access::kWrite, "alltoall", "out");
  const GatheredBlocks result = waiting(
      [&] { return context.alltoall(blocks.view(), output.view, stream_of(blocks.data, output)); });
  return nb::make_tuple(result.count, result.counts, result.contributors);
}

nb::tuple gather(Collectives& context, nb::handle block, const Root& root, const Row& row) {
  const Tensor given = tensor_of(block, Access::kRead, "gather", "block");
  NewBlocks result(given);
  return result.with(waiting([&] {
    return context.gather(given.view, root, Collectives::TakeGathered(std::ref(result)),
                          given.stream, row);
  }));
}

nb::tuple gather_into(Collectives& context, nb::handle block, nb::handle out, const Root& root,
                      const Row& row) {
  const Tensor input = tensor_of(block, Access::kRead, "gather", "block");
  const Tensor output = tensor_of(out, Access::kWrite, "gather", "out");
  const GatheredBlocks result = waiting(
      [&] { return context.gather(input.view, output.view, root, stream_of(input, output), row); });
  return nb::make_tuple(result.count, result.counts, result.contributors);
}

nb::tuple scatter(Collectives& context, nb::handle tensor, const Root& root,
                  const GivenCounts& counts, const GivenWorkers& to) {
  const GivenBlocks blocks(tensor, counts, to, {}, "scatter");
  NewPart result(blocks.data);
  return result.with(waiting([&] {
    return context.scatter(blocks.view(), root, Collectives::TakeScattered(std::ref(result)),
                           blocks.data.stream);
  }));
}

nb::tuple scatter_into(Collectives& context, nb::handle tensor, nb::handle out, const Root& root,
                       const GivenCounts& counts, const GivenWorkers& to) {
  const GivenBlocks blocks(tensor, counts, to, {}, "scatter");
  const Tensor output = tensor_of(out, Access::kWrite, "scatter", "out");
  const ScatteredPart part = waiting([&] {
    return context.scatter(blocks.view(), output.view, root, stream_of(blocks.data, output));
  });
  return nb::make_tuple(part.count, part.offset, part.contributors);
}

/// Calls `reduction` with the input, the output and the stream of a call that may be in place.
template <typename Reduction>
Contributors from_to(nb::handle tensor, nb::handle out, const char* call, Reduction reduction) {
  if (out.is_none()) {
    const Tensor both = tensor_of(tensor, Access::kWrite, call, "tensor");
    return waiting([&] { return reduction(both.view, both.view, both.stream); });
  }
  const Tensor input = tensor_of(tensor, Access::kRead, call, "tensor");
  const Tensor output = tensor_of(out, Access::kWrite, call, "out");
  return waiting([&] { return reduction(input.view, output.view, stream_of(input, output)); });
}

Contributors reduce(Collectives& context, nb::handle tensor, const Root& root, GivenOp given_op,
                    nb::handle out) {
  const ReduceOp op = given_op.in("reduce");
  return from_to(tensor, out, "reduce",
                 [&](const ConstTensorView& from, const TensorView& to, CudaStream stream) {
                   return context.reduce(from, to, root, op, stream);
                 });
}

Contributors scan(Collectives& context, nb::handle tensor, GivenOp given_op, nb::handle out) {
  const ReduceOp op = given_op.in("scan");
  return from_to(tensor, out, "scan",
                 [&](const ConstTensorView& from, const TensorView& to, CudaStream stream) {
                   return context.scan(from, to, op, stream);
                 });
}

Contributors exscan(Collectives& context, nb::handle tensor, GivenOp given_op, nb::handle out) {
  const ReduceOp op = given_op.in("exscan");
  return from_to(tensor, out, "exscan",
                 [&](const ConstTensorView& from, const TensorView& to, CudaStream stream) {
                   return context.exscan(from, to, op, stream);
                 });
}

std::string repr(const Root& root) {
  if (root.worker()) return "elastic.Root.worker(" + std::to_string(*root.worker()) + ")";
  return "elastic.Root(" + std::to_string(root.rank()) + ")";
}

}  // namespace

void bind_root(nb::module_& module) {
  nb::class_<Root>(
      module, "Root",
      "The root of a collective: a rank of the present view, or a worker. A rank is given as it "
      "is,\n``gather(block, 0)``, and means the worker that has it when the call begins.")
      .def(nb::init<int>(), nb::arg("rank"))
      .def_static(
          "worker", [](WorkerId id) { return Root::worker(id); }, nb::arg("id"),
          "The root that is this worker, one of ``members().workers``, whatever becomes of "
          "the ranks.")
      .def("__repr__", &repr);
  nb::implicitly_convertible<int, Root>();
}

void bind_personal_collectives(nb::module_& module, CollectivesClass& context) {
  using nb::arg;
  const auto sum = arg("op") = ReduceOp::kSum;
  const auto in_place = arg("out") = nb::none();
  define(module, context, "_alltoall", &alltoall, arg("tensor").none(), arg("counts").none(),
         arg("to").none(), arg("row"));
  define(module, context, "_alltoall_into", &alltoall_into, arg("tensor").none(), arg("out"),
         arg("counts").none(), arg("to").none(), arg("row"));
  define(module, context, "_gather", &gather, arg("block").none(), arg("root"), arg("row"));
  define(module, context, "_gather_into", &gather_into, arg("block").none(), arg("out"),
         arg("root"), arg("row"));
  define(module, context, "_scatter", &scatter, arg("tensor").none(), arg("root"),
         arg("counts").none(), arg("to").none());
  define(module, context, "_scatter_into", &scatter_into, arg("tensor").none(), arg("out"),
         arg("root"), arg("counts").none(), arg("to").none());
  define(module, context, "reduce", &reduce, arg("tensor").none(), arg("root"), sum, in_place,
         "Combines the tensors of all members as an allreduce does; ``root`` alone gets the "
         "result, in\nplace or in ``out``. Other members' ``out`` is not used, and their tensors "
         "stay as they are.\n\nReturns:\n    The Contributors.\n\nRaises:\n    RootLostError: the "
         "root died before it had all tensors; call again.\n    MismatchError: there is no such "
         "rank, on all members.");
  define(module, context, "scan", &scan, arg("tensor").none(), sum, in_place,
         "Combines the tensors of the members with lower ranks and of this one, element by "
         "element: each\nmember gets another result, in place or in ``out``. Ranks are those of "
         "the view that completes\nthe call. An average is over the tensors that are in "
         "it.\n\nReturns:\n    The Contributors: all workers of that view.");
  define(module, context, "exscan", &exscan, arg("tensor").none(), sum, in_place,
         "As ``scan``, without the tensor of this member. Rank 0 gets the neutral element of "
         "``op``: 0 of a\nsum and an average, 1 of a product, the greatest value of a minimum, the "
         "least of a maximum.");
}

}  // namespace elastic::python
