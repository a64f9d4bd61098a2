// Collectives of several tensors as one unit, but for allreduces.
#include <algorithm>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "pending_work.hpp"

using namespace elastic::c;

namespace {

using Scattered = elastic::Pending<elastic::ScatteredTensors>;
using Gathered = elastic::Pending<elastic::GatheredTensors>;

std::vector<elastic::ConstTensorView> inputs_of(const elastic_tensor* tensors, size_t count,
                                                const char* call) {
  const std::vector<elastic::TensorView> views = tensors_of(tensors, count, call);
  return {views.begin(), views.end()};
}

void fill_parts(elastic_part* parts, const elastic::ScatteredTensors& result) {
  if (parts == nullptr) return;
  std::transform(result.tensors.begin(), result.tensors.end(), parts,
                 [](const elastic::ScatteredPart& part) {
                   return elastic_part{part.count, part.offset};
                 });
}

void fill_gathered(size_t* gathered, size_t* counts, size_t room,
                   const elastic::GatheredTensors& result) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < result.tensors.size(); ++i) {
    const elastic::GatheredBlocks& tensor = result.tensors[i];
    if (gathered != nullptr) gathered[i] = tensor.count;
    all.insert(all.end(), tensor.counts.begin(), tensor.counts.end());
  }
  fill_counts(counts, room, all);
}

}  // namespace

elastic_code elastic_grouped_reduce_scatter(elastic_context* context, const elastic_tensor* inputs,
                                            const elastic_tensor* outputs, size_t count,
                                            elastic_op op, void* stream, elastic_part* parts,
                                            elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_grouped_reduce_scatter";
  return guarded([&] {
    elastic::ScatteredTensors result = collectives_of(context).grouped_reduce_scatter(
        inputs_of(inputs, count, kCall), tensors_of(outputs, count, kCall), op_of(op, kCall),
        {stream});
    fill_parts(parts, result);
    fill(contributors, std::move(result.contributors));
  });
}

elastic_code elastic_grouped_allgather(elastic_context* context, const elastic_tensor* blocks,
                                       const elastic_tensor* outputs, size_t count, void* stream,
                                       size_t* gathered, size_t* counts, size_t room,
                                       elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_grouped_allgather";
  return guarded([&] {
    elastic::GatheredTensors result = collectives_of(context).grouped_allgather(
        inputs_of(blocks, count, kCall), tensors_of(outputs, count, kCall), {stream});
    fill_gathered(gathered, counts, room, result);
    fill(contributors, std::move(result.contributors));
  });
}

elastic_code elastic_grouped_reduce_scatter_async(elastic_context* context,
                                                  const elastic_tensor* inputs,
                                                  const elastic_tensor* outputs, size_t count,
                                                  elastic_op op, void* stream,
                                                  elastic_work** work) {
  constexpr const char* kCall = "elastic_grouped_reduce_scatter_async";
  return guarded([&] {
    require(work, kCall, "work");
    *work = pending([&] {
      return collectives_of(context).grouped_reduce_scatter_async(inputs_of(inputs, count, kCall),
                                                                  tensors_of(outputs, count, kCall),
                                                                  op_of(op, kCall), {stream});
    });
  });
}

elastic_code elastic_grouped_allgather_async(elastic_context* context, const elastic_tensor* blocks,
                                             const elastic_tensor* outputs, size_t count,
                                             void* stream, elastic_work** work) {
  constexpr const char* kCall = "elastic_grouped_allgather_async";
  return guarded([&] {
    require(work, kCall, "work");
    *work = pending([&] {
      return collectives_of(context).grouped_allgather_async(
          inputs_of(blocks, count, kCall), tensors_of(outputs, count, kCall), {stream});
    });
  });
}

elastic_code elastic_work_parts(const elastic_work* work, elastic_part* parts) {
  return guarded(
      [&] { fill_parts(parts, result_of<Scattered>(work, "elastic_work_parts").wait()); });
}

elastic_code elastic_work_gathered(const elastic_work* work, size_t* gathered, size_t* counts,
                                   size_t room) {
  return guarded([&] {
    fill_gathered(gathered, counts, room,
                  result_of<Gathered>(work, "elastic_work_gathered").wait());
  });
}
