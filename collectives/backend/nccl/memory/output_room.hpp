#pragma once

#include <cstddef>

#include "collectives/backend/device_tensors.hpp"

namespace elastic::collectives::nccl {

/// Whether NCCL can write a result of so many bytes straight to the output, without a bucket: there
/// is room for it, and it does not overlap the input, which has to stay intact for the next
/// attempt.
///
/// That excludes the forms that NCCL calls in-place. An allgather in which this rank's block lies
/// at its place in the output is one of them: NCCL reads it there, but over NVLink SHARP also
/// writes it, and after an abort what it writes may be anything (ScatterGatherOp in its
/// prims_simple.h).
bool can_go_to_output(const DeviceTensor& tensor, std::size_t bytes);

}  // namespace elastic::collectives::nccl
