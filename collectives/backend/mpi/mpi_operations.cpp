#include "collectives/backend/mpi/mpi_operations.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include "collectives/kernels/reduce.hpp"

namespace elastic::collectives {

namespace {

/// All but the last two, the Adasums, which combine whole tensors.
constexpr std::size_t kOps = kReduceOps.size() - 2;
static_assert(static_cast<std::size_t>(ReduceOp::kAdasum) == kOps);

/// MPI passes no context to a user's function, so each operation has a function of its own.
template <std::size_t kIndex>
void combine(void* in, void* in_out, int* elements, MPI_Datatype*) {
  static const kernels::Function kernel =
      kernels::reduce(static_cast<DType>(kIndex / kOps), static_cast<ReduceOp>(kIndex % kOps));
  auto* const result = static_cast<std::byte*>(in_out);
  kernel(result, static_cast<const std::byte*>(in), result, static_cast<std::size_t>(*elements));
}

bool commutes(ReduceOp op) {
  return op != ReduceOp::kMin && op != ReduceOp::kMax;
}

template <std::size_t... kIndices>
std::array<MPI_Op, sizeof...(kIndices)> make_all(std::index_sequence<kIndices...>) {
  std::array<MPI_Op, sizeof...(kIndices)> made{};
  ((void)MPI_Op_create(&combine<kIndices>, commutes(static_cast<ReduceOp>(kIndices % kOps)) ? 1 : 0,
                       &made[kIndices]),
   ...);
  return made;
}

}  // namespace

MPI_Datatype mpi_type(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return MPI_UINT8_T;
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    default:
      return MPI_UINT64_T;
  }
}

MPI_Op mpi_op(DType dtype, ReduceOp op) {
  static const auto kAll = make_all(std::make_index_sequence<kDTypes.size() * kOps>());
  return kAll[static_cast<std::size_t>(dtype) * kOps + static_cast<std::size_t>(op)];
}

}  // namespace elastic::collectives
