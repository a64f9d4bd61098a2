#pragma once

#include <mpi.h>

#include "elastic/types.hpp"

namespace elastic::collectives {

/// Elements of `dtype` as MPI moves them.
MPI_Datatype mpi_type(DType dtype);

/// Our kernel for `op` on elements of `dtype`: MPI has no bfloat16, and leaves open which NaN comes
/// of several. Where the order of operands shows in the bits (the minimum of 0.0 and -0.0), MPI is
/// told that it matters, so that all ranks get the same. Made once; any thread.
MPI_Op mpi_op(DType dtype, ReduceOp op);

}  // namespace elastic::collectives
