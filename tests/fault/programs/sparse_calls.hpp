#pragma once

#include <cstddef>
#include <string>

#include <elastic/elastic.hpp>
#include <elastic/sparse_allreduce.hpp>

namespace elastic::fault {

/// The sums of a step with sparse rows, in words, and the contributors of its last call.
struct SparseOutcome {
  std::string sums;
  Contributors who;
};

/// Gives some rows with the digit of `slot` in all of their `elements`, as all workers do, and
/// behind them a row that this worker alone gives. Throws unless the sums, and the rows that are
/// there, are those of the contributors.
SparseOutcome sum_sparse_rows(std::size_t elements, int slot, SparseForm form);

/// The same by two calls without a name, a named one, and a blocking one of two tensors that comes
/// after them.
SparseOutcome sum_pending_sparse_rows(std::size_t elements, int slot);

}  // namespace elastic::fault
