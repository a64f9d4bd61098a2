// Asynchronous collectives whose result differs by rank, and the asynchronous barrier.
#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "pending_work.hpp"

using namespace elastic::c;

elastic_code elastic_gather_async(elastic_context* context, const char* name,
                                  const elastic_tensor* block, const elastic_tensor* out,
                                  elastic_root root, void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_gather_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::TensorView from = tensor_of(block, kCall, "block");
    const elastic::TensorView to = tensor_of(out, kCall, "out");
    elastic::Collectives& its = collectives_of(context);
    *work = pending([&] {
      return name != nullptr ? its.gather_async(name, from, to, root_of(root))
                             : its.gather_async(from, to, root_of(root), {stream});
    });
  });
}

elastic_code elastic_scatter_async(elastic_context* context, const char* name,
                                   const elastic_blocks* blocks, const elastic_tensor* out,
                                   elastic_root root, void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_scatter_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::BlocksView from = blocks_of(blocks, kCall);
    const elastic::TensorView to = tensor_of(out, kCall, "out");
    elastic::Collectives& its = collectives_of(context);
    *work = pending([&] {
      return name != nullptr ? its.scatter_async(name, from, to, root_of(root))
                             : its.scatter_async(from, to, root_of(root), {stream});
    });
  });
}

elastic_code elastic_reduce_async(elastic_context* context, const char* name,
                                  const elastic_tensor* in, const elastic_tensor* out,
                                  elastic_root root, elastic_op op, void* stream,
                                  elastic_work** work) {
  constexpr const char* kCall = "elastic_reduce_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::TensorView from = tensor_of(in, kCall, "in");
    const elastic::TensorView to = tensor_of(out, kCall, "out");
    const elastic::ReduceOp by = op_of(op, kCall);
    elastic::Collectives& its = collectives_of(context);
    *work =
        new elastic_work{name != nullptr ? its.reduce_async(name, from, to, root_of(root), by)
                                         : its.reduce_async(from, to, root_of(root), by, {stream})};
  });
}

elastic_code elastic_scan_async(elastic_context* context, const char* name,
                                const elastic_tensor* in, const elastic_tensor* out, elastic_op op,
                                void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_scan_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::TensorView from = tensor_of(in, kCall, "in");
    const elastic::TensorView to = tensor_of(out, kCall, "out");
    const elastic::ReduceOp by = op_of(op, kCall);
    elastic::Collectives& its = collectives_of(context);
    *work = new elastic_work{name != nullptr ? its.scan_async(name, from, to, by)
                                             : its.scan_async(from, to, by, {stream})};
  });
}

elastic_code elastic_exscan_async(elastic_context* context, const char* name,
                                  const elastic_tensor* in, const elastic_tensor* out,
                                  elastic_op op, void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_exscan_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::TensorView from = tensor_of(in, kCall, "in");
    const elastic::TensorView to = tensor_of(out, kCall, "out");
    const elastic::ReduceOp by = op_of(op, kCall);
    elastic::Collectives& its = collectives_of(context);
    *work = new elastic_work{name != nullptr ? its.exscan_async(name, from, to, by)
                                             : its.exscan_async(from, to, by, {stream})};
  });
}

elastic_code elastic_barrier_async(elastic_context* context, const char* name,
                                   elastic_work** work) {
  return guarded([&] {
    require(work, "elastic_barrier_async", "work");
    elastic::Collectives& its = collectives_of(context);
    *work = new elastic_work{name != nullptr ? its.barrier_async(name) : its.barrier_async()};
  });
}
