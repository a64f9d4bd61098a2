// Reductions that gather the contributions of all members: values with indices, and sparse rows.
#include <span>
#include <utility>
#include <vector>

#include <elastic/minloc.hpp>
#include <elastic/sparse_allreduce.hpp>

#include "arguments.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "pending_work.hpp"

using namespace elastic::c;

namespace {

/// The indices that come with `values`.
std::span<int64_t> indices_of(const elastic_tensor* values, int64_t* indices, const char* call) {
  if (values->count > 0) require(indices, call, "indices");
  return {indices, values->count};
}

elastic::SparseRowsView rows_of(const elastic_sparse_rows* rows, const char* call) {
  require(rows, call, "rows");
  if (rows->count > 0) require(rows->indices, call, "indices");
  return {{rows->indices, rows->count},
          tensor_of(&rows->values, call, "values of the rows"),
          rows->width,
          rows->rows};
}

/// The call is complete on all members, so the code that `take` returns is between this program and
/// its caller.
void give(const elastic::SparseRows& sums, elastic_take_rows take, void* user, const char* what) {
  call_back(what, [&] {
    return take(user, sums.indices.data(), sums.values.data(), sums.indices.size());
  });
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
    const elastic::SparseRowsView view = rows_of(rows, kCall);
    require(reinterpret_cast<const void*>(take), kCall, "take");
    elastic::SparseRows sums =
        elastic::sparse_allreduce(collectives_of(context), view, op_of(op, kCall));
    give(sums, take, user, "elastic_sparse_allreduce's function");
    fill(contributors, std::move(sums.contributors));
  });
}

elastic_code elastic_grouped_sparse_allreduce(elastic_context* context,
                                              const elastic_sparse_rows* tensors, size_t count,
                                              elastic_op op, elastic_take_rows take, void* user,
                                              elastic_contributors* contributors) {
  constexpr const char* kCall = "elastic_grouped_sparse_allreduce";
  return guarded([&] {
    if (count > 0) require(tensors, kCall, "tensors");
    require(reinterpret_cast<const void*>(take), kCall, "take");
    std::vector<elastic::SparseRowsView> views;
    for (size_t i = 0; i < count; ++i) views.push_back(rows_of(tensors + i, kCall));
    auto sums = elastic::grouped_sparse_allreduce(collectives_of(context), views, op_of(op, kCall));
    for (const elastic::SparseRows& each : sums) {
      give(each, take, user, "elastic_grouped_sparse_allreduce's function");
    }
    fill(contributors, std::move(sums.front().contributors));
  });
}

elastic_code elastic_sparse_allreduce_async(elastic_context* context, const char* name,
                                            const elastic_sparse_rows* rows, elastic_op op,
                                            elastic_work** work) {
  constexpr const char* kCall = "elastic_sparse_allreduce_async";
  return guarded([&] {
    require(work, kCall, "work");
    const elastic::SparseRowsView view = rows_of(rows, kCall);
    const elastic::ReduceOp by = op_of(op, kCall);
    elastic::Collectives& its = collectives_of(context);
    *work = pending([&] {
      return name != nullptr ? elastic::sparse_allreduce_async(its, name, view, by)
                             : elastic::sparse_allreduce_async(its, view, by);
    });
  });
}

elastic_code elastic_work_rows(const elastic_work* work, elastic_take_rows take, void* user) {
  constexpr const char* kCall = "elastic_work_rows";
  return guarded([&] {
    require(reinterpret_cast<const void*>(take), kCall, "take");
    const auto& its = result_of<elastic::PendingSparseRows>(work, kCall);
    give(its.wait(), take, user, "elastic_work_rows' function");
  });
}
