// Reductions that gather the contributions of all members: values with indices, and sparse rows.
#include <span>
#include <utility>

#include <elastic/minloc.hpp>
#include <elastic/sparse_allreduce.hpp>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"

using namespace elastic::c;

namespace {

/// The indices that come with `values`.
std::span<int64_t> indices_of(const elastic_tensor* values, int64_t* indices, const char* call) {
  if (values->count > 0) require(indices, call, "indices");
  return {indices, values->count};
}

}  // namespace

elastic_code elastic_minloc(elastic_context* context, const elastic_tensor* values,
                            int64_t* indices, elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_minloc";
  return guarded([&] {
    const elastic::TensorView view = tensor_of(values, kCall, "values");
    fill(contributors,
         elastic::minloc(collectives_of(context), view, indices_of(values, indices, kCall)));
  });
}

elastic_code elastic_maxloc(elastic_context* context, const elastic_tensor* values,
                            int64_t* indices, elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_maxloc";
  return guarded([&] {
    const elastic::TensorView view = tensor_of(values, kCall, "values");
    fill(contributors,
         elastic::maxloc(collectives_of(context), view, indices_of(values, indices, kCall)));
  });
}

elastic_code elastic_sparse_allreduce(elastic_context* context, const elastic_sparse_rows* rows,
                                      elastic_op op, elastic_take_rows take, void* user,
                                      elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_sparse_allreduce";
  return guarded([&] {
    require(rows, kCall, "rows");
    require(reinterpret_cast<const void*>(take), kCall, "take");
    if (rows->count > 0) require(rows->indices, kCall, "indices");
    elastic::SparseRows sums =
        elastic::sparse_allreduce(collectives_of(context),
                                  {{rows->indices, rows->count},
                                   tensor_of(&rows->values, kCall, "values of the rows"),
                                   rows->width,
                                   rows->rows},
                                  op_of(op, kCall));
    call_back("elastic_sparse_allreduce's function", [&] {
      return take(user, sums.indices.data(), sums.values.data(), sums.indices.size());
    });
    fill(contributors, std::move(sums.contributors));
  });
}
