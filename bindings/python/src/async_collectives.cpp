// The asynchronous collectives. Without a name they keep the program order, with one they may come
// in any order.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "given_blocks.hpp"
#include "given_op.hpp"
#include "taken_result.hpp"
#include "tensors.hpp"
#include "waiting.hpp"
#include "work.hpp"

namespace elastic::python {

namespace {

using Name = std::optional<std::string>;
using Tensors = std::vector<Tensor>;

Tensor input(nb::handle tensor, const char* call, const char* what = "tensor") {
  return kept(tensor_of(tensor, Access::kRead, call, what));
}

Tensor output(nb::handle tensor, const char* call, const char* what = "out") {
  return kept(tensor_of(tensor, Access::kWrite, call, what));
}

Tensors all_of(nb::sequence tensors, const char* call) {
  Tensors given = tensors_of(tensors, Access::kWrite, call);
  for (Tensor& tensor : given) tensor = kept(std::move(tensor));
  return given;
}

/// A call whose result becomes a new array like `like`. `start` gets the function that takes it.
template <typename Kept, typename Start>
PendingWork taking(const Tensor& like, const Start& start) {
  auto result = std::make_shared<Kept>();
  Work work = waiting([&] {
    return start([result](std::span<const std::byte> bytes, auto shape) {
      (*result)(bytes, std::move(shape));
    });
  });
  return PendingWork(std::move(work), {like}, [like, result] { return result->with(like); });
}

/// A call whose result lies in `out`: Python gets its count and shape.
template <typename Start>
PendingWork placing(const Tensor& from, const Tensor& out, const Start& start) {
  auto pending = waiting(start);
  Work work = pending.work();
  return PendingWork(std::move(work), {from, out}, [pending] {
    const auto result = pending.wait();  // it is complete
    if constexpr (requires { result.counts; }) return nb::make_tuple(result.count, result.counts);
    if constexpr (requires { result.offset; }) return nb::make_tuple(result.count, result.offset);
  });
}

PendingWork named_allreduce(Collectives& context, const std::string& name, nb::handle tensor,
                            GivenOp given_op, double prescale, double postscale) {
  const ReduceOp op = given_op.in("allreduce_async");
  Tensor given = output(tensor, "allreduce_async", "tensor");
  Work work = waiting([&] {
    return context.allreduce_async(name, given.view, op, Scale(prescale, postscale), given.stream);
  });
  return PendingWork(std::move(work), {std::move(given)});
}

PendingWork named_grouped_allreduce(Collectives& context, const std::string& name,
                                    nb::sequence tensors, GivenOp given_op, double prescale,
                                    double postscale) {
  const ReduceOp op = given_op.in("grouped_allreduce_async");
  Tensors given = all_of(tensors, "grouped_allreduce_async");
  const std::vector<TensorView> views = views_of(given);
  Work work = waiting([&] {
    return context.grouped_allreduce_async(name, views, op, Scale(prescale, postscale),
                                           stream_of(given));
  });
  return PendingWork(std::move(work), std::move(given));
}

PendingWork allreduce(Collectives& context, nb::handle tensor, GivenOp given_op, nb::handle out) {
  const ReduceOp op = given_op.in("allreduce_async");
  if (out.is_none()) {
    Tensor both = output(tensor, "allreduce_async", "tensor");
    Work work = waiting([&] { return context.allreduce_async(both.view, op, both.stream); });
    return PendingWork(std::move(work), {std::move(both)});
  }
  Tensor from = input(tensor, "allreduce_async");
  Tensor to = output(out, "allreduce_async");
  Work work =
      waiting([&] { return context.allreduce_async(from.view, to.view, op, stream_of(from, to)); });
  return PendingWork(std::move(work), {std::move(from), std::move(to)});
}

PendingWork grouped_allreduce(Collectives& context, nb::sequence tensors, GivenOp given_op) {
  const ReduceOp op = given_op.in("grouped_allreduce_async");
  Tensors given = all_of(tensors, "grouped_allreduce_async");
  const std::vector<TensorView> views = views_of(given);
  Work work = waiting([&] { return context.grouped_allreduce_async(views, op, stream_of(given)); });
  return PendingWork(std::move(work), std::move(given));
}

PendingWork broadcast(Collectives& context, nb::handle tensor, const Root& root, const Name& name) {
  Tensor given = output(tensor, "broadcast_async", "tensor");
  Work work = waiting([&] {
    return name ? context.broadcast_async(*name, given.view, root, given.stream)
                : context.broadcast_async(given.view, root, given.stream);
  });
  return PendingWork(std::move(work), {std::move(given)});
}

PendingWork allgather(Collectives& context, nb::handle block, const Row& row, const Name& name) {
  const Tensor given = input(block, "allgather_async", "block");
  return taking<KeptBlocks>(given, [&](Collectives::TakeGathered take) {
    return name ? context.allgather_async(*name, given.view, std::move(take), row)
                : context.allgather_async(given.view, std::move(take), given.stream, row);
  });
}

PendingWork reduce_scatter(Collectives& context, nb::handle tensor, GivenOp given_op,
                           const Name& name) {
  const ReduceOp op = given_op.in("reduce_scatter_async");
  const Tensor given = input(tensor, "reduce_scatter_async");
  return taking<KeptPart>(given, [&](Collectives::TakeScattered take) {
    return name ? context.reduce_scatter_async(*name, given.view, op, std::move(take))
                : context.reduce_scatter_async(given.view, op, std::move(take), given.stream);
  });
}

PendingWork reduce_scatter_into(Collectives& context, nb::handle tensor, nb::handle out,
                                GivenOp given_op, const Name& name) {
  const ReduceOp op = given_op.in("reduce_scatter_async");
  const Tensor from = input(tensor, "reduce_scatter_async");
  const Tensor to = output(out, "reduce_scatter_async");
  return placing(from, to, [&] {
    return name ? context.reduce_scatter_async(*name, from.view, to.view, op, stream_of(from, to))
                : context.reduce_scatter_async(from.view, to.view, op, stream_of(from, to));
  });
}

PendingWork alltoall(Collectives& context, nb::handle tensor, const GivenCounts& counts,
                     const GivenWorkers& workers, const Row& row, const Name& name) {
  GivenBlocks given(tensor, counts, workers, row, "alltoall_async");
  given.data = kept(std::move(given.data));
  return taking<KeptBlocks>(given.data, [&](Collectives::TakeGathered take) {
    return name ? context.alltoall_async(*name, given.view(), std::move(take))
                : context.alltoall_async(given.view(), std::move(take), given.data.stream);
  });
}

PendingWork alltoall_into(Collectives& context, nb::handle tensor, nb::handle out,
                          const GivenCounts& counts, const GivenWorkers& workers, const Row& row,
                          const Name& name) {
  GivenBlocks given(tensor, counts, workers, row, "alltoall_async");
  given.data = kept(std::move(given.data));
  const Tensor to = output(out, "alltoall_async");
  return placing(given.data, to, [&] {
    return name ? context.alltoall_async(*name, given.view(), to.view)
                : context.alltoall_async(given.view(), to.view, stream_of(given.data, to));
  });
}

PendingWork gather(Collectives& context, nb::handle block, const Root& root, const Row& row,
                   const Name& name) {
  const Tensor given = input(block, "gather_async", "block");
  return taking<KeptBlocks>(given, [&](Collectives::TakeGathered take) {
    return name ? context.gather_async(*name, given.view, root, std::move(take), row)
                : context.gather_async(given.view, root, std::move(take), given.stream, row);
  });
}

PendingWork scatter(Collectives& context, nb::handle tensor, const Root& root,
                    const GivenCounts& counts, const GivenWorkers& workers, const Name& name) {
  GivenBlocks given(tensor, counts, workers, {}, "scatter_async");
  given.data = kept(std::move(given.data));
  return taking<KeptPart>(given.data, [&](Collectives::TakeScattered take) {
    return name ? context.scatter_async(*name, given.view(), root, std::move(take))
                : context.scatter_async(given.view(), root, std::move(take), given.data.stream);
  });
}

/// A call from a tensor to another one, or in place.
template <typename Start>
PendingWork from_to(nb::handle tensor, nb::handle out, const char* call, Start start) {
  Tensors given;
  if (out.is_none()) {
    given = {output(tensor, call, "tensor")};
  } else {
    given = {input(tensor, call), output(out, call)};
  }
  const Tensor& from = given.front();
  const Tensor& to = given.back();
  Work work = waiting([&] { return start(from.view, to.view, stream_of(from, to)); });
  return PendingWork(std::move(work), std::move(given));
}

PendingWork reduce(Collectives& context, nb::handle tensor, const Root& root, GivenOp given_op,
                   nb::handle out, const Name& name) {
  const ReduceOp op = given_op.in("reduce_async");
  return from_to(tensor, out, "reduce_async",
                 [&](const ConstTensorView& from, const TensorView& to, CudaStream stream) {
                   return name ? context.reduce_async(*name, from, to, root, op)
                               : context.reduce_async(from, to, root, op, stream);
                 });
}

PendingWork scan(Collectives& context, nb::handle tensor, GivenOp given_op, nb::handle out,
                 const Name& name) {
  const ReduceOp op = given_op.in("scan_async");
  return from_to(tensor, out, "scan_async",
                 [&](const ConstTensorView& from, const TensorView& to, CudaStream stream) {
                   return name ? context.scan_async(*name, from, to, op)
                               : context.scan_async(from, to, op, stream);
                 });
}

PendingWork exscan(Collectives& context, nb::handle tensor, GivenOp given_op, nb::handle out,
                   const Name& name) {
  const ReduceOp op = given_op.in("exscan_async");
  return from_to(tensor, out, "exscan_async",
                 [&](const ConstTensorView& from, const TensorView& to, CudaStream stream) {
                   return name ? context.exscan_async(*name, from, to, op)
                               : context.exscan_async(from, to, op, stream);
                 });
}

PendingWork barrier(Collectives& context, const Name& name) {
  return PendingWork(
      waiting([&] { return name ? context.barrier_async(*name) : context.barrier_async(); }), {});
}

}  // namespace

void bind_async_collectives(nb::module_& module, CollectivesClass& context) {
  using nb::arg;
  const auto sum = arg("op") = ReduceOp::kSum;
  const auto in_place = arg("out") = nb::none();
  const auto prescale = arg("prescale") = 1.0;
  const auto postscale = arg("postscale") = 1.0;
  const auto name = arg("name") = nb::none();
  define(module, context, "allreduce_async", &named_allreduce, arg("name"), arg("tensor").none(),
         sum, nb::kw_only(), prescale, postscale,
         "Starts an allreduce in place under a name, and returns its Work.\n\nNames may be "
         "submitted in any order and from any thread; tensors that are ready together\ntravel "
         "together. Each member submits a name once before it is submitted again anywhere.");
  define(module, context, "allreduce_async", &allreduce, arg("tensor").none(), sum, in_place,
         "Starts an allreduce in program order: the same calls in the same order on all members, "
         "among them\nthose that wait.");
  define(module, context, "grouped_allreduce_async", &named_grouped_allreduce, arg("name"),
         arg("tensors"), sum, nb::kw_only(), prescale, postscale,
         "Starts a grouped_allreduce under a name, and returns its Work.");
  define(module, context, "grouped_allreduce_async", &grouped_allreduce, arg("tensors"), sum,
         "Starts a grouped_allreduce in program order.");
  define(module, context, "broadcast_async", &broadcast, arg("tensor").none(), arg("root"),
         nb::kw_only(), name,
         "Starts a broadcast, and returns its Work: in program order, or under a name.\n\nWith a "
         "name a root that is given as a rank is the worker that has it in the view in which "
         "the\ncall runs.");
  define(module, context, "_allgather_async", &allgather, arg("block").none(), arg("row"), name);
  define(module, context, "_reduce_scatter_async", &reduce_scatter, arg("tensor").none(), sum,
         name);
  define(module, context, "_reduce_scatter_into_async", &reduce_scatter_into, arg("tensor").none(),
         arg("out"), sum, name);
  define(module, context, "_alltoall_async", &alltoall, arg("tensor").none(), arg("counts").none(),
         arg("to").none(), arg("row"), name);
  define(module, context, "_alltoall_into_async", &alltoall_into, arg("tensor").none(), arg("out"),
         arg("counts").none(), arg("to").none(), arg("row"), name);
  define(module, context, "_gather_async", &gather, arg("block").none(), arg("root"), arg("row"),
         name);
  define(module, context, "_scatter_async", &scatter, arg("tensor").none(), arg("root"),
         arg("counts").none(), arg("to").none(), name);
  define(module, context, "reduce_async", &reduce, arg("tensor").none(), arg("root"), sum, in_place,
         nb::kw_only(), name,
         "Starts a reduce, and returns its Work: in program order, or under a name.");
  define(module, context, "scan_async", &scan, arg("tensor").none(), sum, in_place, nb::kw_only(),
         name, "Starts a scan, and returns its Work: in program order, or under a name.");
  define(module, context, "exscan_async", &exscan, arg("tensor").none(), sum, in_place,
         nb::kw_only(), name,
         "Starts an exscan, and returns its Work: in program order, or under a name.");
  define(module, context, "barrier_async", &barrier, nb::kw_only(), name,
         "Starts a barrier, and returns its Work: in program order, or under a name.");
}

}  // namespace elastic::python
