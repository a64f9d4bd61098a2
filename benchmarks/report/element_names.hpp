#pragma once

#include <string>
#include <vector>

#include "elastic/types.hpp"

namespace elastic::bench {

/// The names that nccl-tests uses, for option values, the table and the report.
const char* name_of(DType dtype);
const char* name_of(ReduceOp op);

std::vector<DType> all_dtypes();
/// Those of nccl-tests.
std::vector<ReduceOp> all_ops();

}  // namespace elastic::bench
