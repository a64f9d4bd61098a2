// Collectives and their results.
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "gathered_taker.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

namespace {

static_assert(static_cast<int>(elastic::DType::kBool) == ELASTIC_BOOL);
static_assert(elastic::kDTypes.size() == ELASTIC_BOOL + 1);
static_assert(static_cast<int>(elastic::ReduceOp::kProduct) == ELASTIC_PRODUCT);
static_assert(static_cast<int>(elastic::ReduceOp::kLogicalXor) == ELASTIC_LOGICAL_XOR);
static_assert(static_cast<int>(elastic::ReduceOp::kAdasum) == ELASTIC_ADASUM);
static_assert(static_cast<int>(elastic::ReduceOp::kHierarchicalAdasum) ==
              ELASTIC_HIERARCHICAL_ADASUM);
static_assert(elastic::kReduceOps.size() == ELASTIC_HIERARCHICAL_ADASUM + 1);
static_assert(static_cast<int>(elastic::Device::Kind::kCuda) == ELASTIC_CUDA);

}  // namespace

size_t elastic_dtype_size(elastic_dtype dtype) {
  return static_cast<int>(dtype) < 0 || static_cast<int>(dtype) > ELASTIC_BOOL
             ? 0
             : elastic::size_of(static_cast<elastic::DType>(dtype));
}

elastic_code elastic_contributors_create(elastic_contributors** contributors) {
  return guarded([&] {
    require(contributors, "elastic_contributors_create", "contributors");
    *contributors = new elastic_contributors;
  });
}
void elastic_contributors_destroy(elastic_contributors* contributors) {
  delete contributors;
}
size_t elastic_contributors_count(const elastic_contributors* contributors) {
  return contributors != nullptr ? contributors->value.size() : 0;
}
const uint64_t* elastic_contributors_workers(const elastic_contributors* contributors) {
  return contributors != nullptr ? contributors->value.workers().data() : nullptr;
}
uint64_t elastic_contributors_generation(const elastic_contributors* contributors) {
  return contributors != nullptr ? contributors->value.generation() : 0;
}

elastic_code elastic_allreduce(elastic_context* context, const elastic_tensor* in,
                               const elastic_tensor* out, elastic_op op, void* stream,
                               elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_allreduce";
  return guarded([&] {
    fill(contributors,
         collectives_of(context).allreduce(tensor_of(in, kCall, "in"), tensor_of(out, kCall, "out"),
                                           op_of(op, kCall), {stream}));
  });
}

elastic_code elastic_grouped_allreduce(elastic_context* context, const elastic_tensor* tensors,
                                       size_t count, elastic_op op, void* stream,
                                       elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_grouped_allreduce";
  return guarded([&] {
    fill(contributors, collectives_of(context).grouped_allreduce(tensors_of(tensors, count, kCall),
                                                                 op_of(op, kCall), {stream}));
  });
}

elastic_code elastic_scaled_allreduce(elastic_context* context, const elastic_tensor* in,
                                      const elastic_tensor* out, elastic_op op, double before,
                                      double after, void* stream,
                                      elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_scaled_allreduce";
  return guarded([&] {
    fill(contributors, collectives_of(context).allreduce(
                           tensor_of(in, kCall, "in"), tensor_of(out, kCall, "out"),
                           op_of(op, kCall), elastic::Scale(before, after), {stream}));
  });
}

elastic_code elastic_scaled_grouped_allreduce(elastic_context* context,
                                              const elastic_tensor* tensors, size_t count,
                                              elastic_op op, double before, double after,
                                              void* stream, elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_scaled_grouped_allreduce";
  return guarded([&] {
    fill(contributors, collectives_of(context).grouped_allreduce(
                           tensors_of(tensors, count, kCall), op_of(op, kCall),
                           elastic::Scale(before, after), {stream}));
  });
}

elastic_code elastic_broadcast(elastic_context* context, const elastic_tensor* tensor, int root,
                               void* stream, elastic_contributors* contributors) {
  return guarded([&] {
    fill(contributors, collectives_of(context).broadcast(
                           tensor_of(tensor, "elastic_broadcast", "tensor"), root, {stream}));
  });
}

elastic_code elastic_broadcast_from(elastic_context* context, const elastic_tensor* tensor,
                                    uint64_t root, void* stream,
                                    elastic_contributors* contributors) {
  return guarded([&] {
    fill(contributors, collectives_of(context).broadcast_from(
                           tensor_of(tensor, "elastic_broadcast_from", "tensor"), root, {stream}));
  });
}

elastic_code elastic_barrier(elastic_context* context, elastic_contributors* contributors) {
  return guarded([&] { fill(contributors, collectives_of(context).barrier()); });
}

elastic_code elastic_join(elastic_context* context, int* last_rank,
                          elastic_contributors* contributors) {
  return guarded([&] {
    elastic::JoinOutcome outcome = context_of(context, "elastic_join").join();
    fill(last_rank, outcome.last_rank);
    fill(contributors, std::move(outcome.contributors));
  });
}

elastic_code elastic_allgather(elastic_context* context, const elastic_tensor* block,
                               const elastic_tensor* out, void* stream, size_t* gathered,
                               elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_allgather";
  return guarded([&] {
    elastic::GatheredBlocks result = collectives_of(context).allgather(
        tensor_of(block, kCall, "block"), tensor_of(out, kCall, "out"), {stream});
    fill(gathered, result.count);
    fill(contributors, std::move(result.contributors));
  });
}

elastic_code elastic_allgather_take(elastic_context* context, const elastic_tensor* block,
                                    void* stream, elastic_take_gathered take, void* user,
                                    elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_allgather_take";
  return guarded([&] {
    GatheredTaker taker(take, user, kCall);
    elastic::Contributors its = collectives_of(context).allgather(tensor_of(block, kCall, "block"),
                                                                  taker.function(), {stream});
    taker.raise();
    fill(contributors, std::move(its));
  });
}

elastic_code elastic_reduce_scatter(elastic_context* context, const elastic_tensor* data,
                                    const elastic_tensor* out, elastic_op op, void* stream,
                                    size_t* count, size_t* offset,
                                    elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_reduce_scatter";
  return guarded([&] {
    elastic::ScatteredPart part = collectives_of(context).reduce_scatter(
        tensor_of(data, kCall, "data"), tensor_of(out, kCall, "out"), op_of(op, kCall), {stream});
    fill(count, part.count);
    fill(offset, part.offset);
    fill(contributors, std::move(part.contributors));
  });
}
