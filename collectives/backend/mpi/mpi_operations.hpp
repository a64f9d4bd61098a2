#pragma once

#include <mpi.h>

#include "elastic/types.hpp"

namespace elastic::collectives {

/// The MPI type that has the size of `dtype`.
MPI_Datatype mpi_type(DType dtype);

/// An MPI operation that calls this library's kernel for `op` and `dtype`: MPI has no bfloat16, and
/// does not define the result of several NaNs. If the order of operands affects the bits (as in the
/// minimum of 0.0 and -0.0), it is not commutative to MPI. There is none for the
/// Adasums. Made once;
/// any thread.
MPI_Op mpi_op(DType dtype, ReduceOp op);

}  // namespace elastic::collectives
