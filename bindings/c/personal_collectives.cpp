// Collectives whose result differs by rank: alltoall, gather, scatter, reduce, scan and exscan.
#include <utility>

#include "arguments.hpp"
#include "gathered_taker.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

elastic_code elastic_alltoall(elastic_context* context, const elastic_blocks* blocks,
                              const elastic_tensor* out, void* stream, size_t* gathered,
                              size_t* counts, size_t room, elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_alltoall";
  return guarded([&] {
    elastic::GatheredBlocks result = collectives_of(context).alltoall(
        blocks_of(blocks, kCall), tensor_of(out, kCall, "out"), {stream});
    fill(gathered, result.count);
    fill_counts(counts, room, result.counts);
    fill(contributors, std::move(result.contributors));
  });
}

elastic_code elastic_alltoall_take(elastic_context* context, const elastic_blocks* blocks,
                                   void* stream, elastic_take_gathered take, void* user,
                                   elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_alltoall_take";
  return guarded([&] {
    GatheredTaker taker(take, user, kCall);
    elastic::Contributors its =
        collectives_of(context).alltoall(blocks_of(blocks, kCall), taker.function(), {stream});
    taker.raise();
    fill(contributors, std::move(its));
  });
}

elastic_code elastic_gather(elastic_context* context, const elastic_tensor* block,
                            const elastic_tensor* out, elastic_root root, void* stream,
                            size_t* gathered, size_t* counts, size_t room,
                            elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_gather";
  return guarded([&] {
    elastic::GatheredBlocks result = collectives_of(context).gather(
        tensor_of(block, kCall, "block"), tensor_of(out, kCall, "out"), root_of(root), {stream});
    fill(gathered, result.count);
    fill_counts(counts, room, result.counts);
    fill(contributors, std::move(result.contributors));
  });
}

elastic_code elastic_gather_take(elastic_context* context, const elastic_tensor* block,
                                 elastic_root root, void* stream, elastic_take_gathered take,
                                 void* user, elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_gather_take";
  return guarded([&] {
    GatheredTaker taker(take, user, kCall);
    elastic::Contributors its = collectives_of(context).gather(
        tensor_of(block, kCall, "block"), root_of(root), taker.function(), {stream});
    taker.raise();
    fill(contributors, std::move(its));
  });
}

elastic_code elastic_scatter(elastic_context* context, const elastic_blocks* blocks,
                             const elastic_tensor* out, elastic_root root, void* stream,
                             size_t* count, size_t* offset, elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_scatter";
  return guarded([&] {
    elastic::ScatteredPart part = collectives_of(context).scatter(
        blocks_of(blocks, kCall), tensor_of(out, kCall, "out"), root_of(root), {stream});
    fill(count, part.count);
    fill(offset, part.offset);
    fill(contributors, std::move(part.contributors));
  });
}

elastic_code elastic_reduce(elastic_context* context, const elastic_tensor* in,
                            const elastic_tensor* out, elastic_root root, elastic_op op,
                            void* stream, elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_reduce";
  return guarded([&] {
    fill(contributors,
         collectives_of(context).reduce(tensor_of(in, kCall, "in"), tensor_of(out, kCall, "out"),
                                        root_of(root), op_of(op, kCall), {stream}));
  });
}

elastic_code elastic_scan(elastic_context* context, const elastic_tensor* in,
                          const elastic_tensor* out, elastic_op op, void* stream,
                          elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_scan";
  return guarded([&] {
    fill(contributors,
         collectives_of(context).scan(tensor_of(in, kCall, "in"), tensor_of(out, kCall, "out"),
                                      op_of(op, kCall), {stream}));
  });
}

elastic_code elastic_exscan(elastic_context* context, const elastic_tensor* in,
                            const elastic_tensor* out, elastic_op op, void* stream,
                            elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_exscan";
  return guarded([&] {
    fill(contributors,
         collectives_of(context).exscan(tensor_of(in, kCall, "in"), tensor_of(out, kCall, "out"),
                                        op_of(op, kCall), {stream}));
  });
}
