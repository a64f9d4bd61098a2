// Collectives of several tensors as one unit, but for allreduces: blocking, and in program order.
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "given_op.hpp"
#include "tensors.hpp"
#include "waiting.hpp"
#include "work.hpp"

namespace elastic::python {

namespace {

/// The tensors of a call, which keep their memory.
struct GivenGroup {
  std::vector<Tensor> from;
  std::vector<Tensor> to;

  GivenGroup(nb::sequence inputs, nb::sequence outputs, const char* call)
      : from(tensors_of(inputs, Access::kRead, call)),
        to(tensors_of(outputs, Access::kWrite, call)) {
    for (Tensor& tensor : from) tensor = kept(std::move(tensor));
    for (Tensor& tensor : to) tensor = kept(std::move(tensor));
  }
  std::vector<ConstTensorView> inputs() const {
    const std::vector<TensorView> views = views_of(from);
    return {views.begin(), views.end()};
  }
  std::vector<TensorView> outputs() const { return views_of(to); }
  CudaStream stream() const {
    const CudaStream stream = stream_of(from);
    return stream.handle != nullptr ? stream : stream_of(to);
  }
  std::vector<Tensor> all() const {
    std::vector<Tensor> tensors = from;
    tensors.insert(tensors.end(), to.begin(), to.end());
    return tensors;
  }
};

/// A tuple for each tensor, of which Python makes the results.
nb::list described(const ScatteredTensors& result) {
  nb::list parts;
  for (const ScatteredPart& part : result.tensors) {
    parts.append(nb::make_tuple(part.count, part.offset));
  }
  return parts;
}

nb::list described(const GatheredTensors& result) {
  nb::list tensors;
  for (const GatheredBlocks& blocks : result.tensors) {
    tensors.append(nb::make_tuple(blocks.count, blocks.counts));
  }
  return tensors;
}

template <typename Result>
PendingWork pending_work(const Pending<Result>& pending, const GivenGroup& given) {
  return PendingWork(pending.work(), given.all(),
                     [pending] { return nb::make_tuple(described(pending.wait())); });
}

nb::tuple reduce_scatter(Collectives& context, nb::sequence tensors, nb::sequence out,
                         GivenOp given_op) {
  constexpr const char* kCall = "grouped_reduce_scatter";
  const ReduceOp op = given_op.in(kCall);
  const GivenGroup given(tensors, out, kCall);
  const ScatteredTensors result = waiting([&] {
    return context.grouped_reduce_scatter(given.inputs(), given.outputs(), op, given.stream());
  });
  return nb::make_tuple(described(result), result.contributors);
}

nb::tuple allgather(Collectives& context, nb::sequence blocks, nb::sequence out) {
  const GivenGroup given(blocks, out, "grouped_allgather");
  const GatheredTensors result = waiting(
      [&] { return context.grouped_allgather(given.inputs(), given.outputs(), given.stream()); });
  return nb::make_tuple(described(result), result.contributors);
}

PendingWork reduce_scatter_async(Collectives& context, nb::sequence tensors, nb::sequence out,
                                 GivenOp given_op) {
  constexpr const char* kCall = "grouped_reduce_scatter_async";
  const ReduceOp op = given_op.in(kCall);
  const GivenGroup given(tensors, out, kCall);
  return pending_work(waiting([&] {
                        return context.grouped_reduce_scatter_async(given.inputs(), given.outputs(),
                                                                    op, given.stream());
                      }),
                      given);
}

PendingWork allgather_async(Collectives& context, nb::sequence blocks, nb::sequence out) {
  const GivenGroup given(blocks, out, "grouped_allgather_async");
  return pending_work(waiting([&] {
                        return context.grouped_allgather_async(given.inputs(), given.outputs(),
                                                               given.stream());
                      }),
                      given);
}

}  // namespace

void bind_grouped_collectives(nb::module_& module, CollectivesClass& context) {
  using nb::arg;
  const auto sum = arg("op") = ReduceOp::kSum;
  define(module, context, "_grouped_reduce_scatter", &reduce_scatter, arg("tensors"), arg("out"),
         sum);
  define(module, context, "_grouped_allgather", &allgather, arg("blocks"), arg("out"));
  define(module, context, "_grouped_reduce_scatter_async", &reduce_scatter_async, arg("tensors"),
         arg("out"), sum);
  define(module, context, "_grouped_allgather_async", &allgather_async, arg("blocks"), arg("out"));
}

}  // namespace elastic::python
