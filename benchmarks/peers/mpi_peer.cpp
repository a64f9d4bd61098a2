// The peer for MPI's blocking collectives, with MPI's own types and operations.
#include <limits>
#include <memory>
#include <mpi.h>
#include <string>
#include <utility>

#include "benchmarks/peers/mpi_process.hpp"
#include "benchmarks/peers/peer.hpp"
#include "collectives/backend/mpi/mpi_status.hpp"

namespace elastic::bench {
namespace {

using collectives::mpi_status;

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return MPI_FLOAT;
    case DType::kF64:
      return MPI_DOUBLE;
    case DType::kI8:
      return MPI_INT8_T;
    case DType::kU8:
      return MPI_UINT8_T;
    case DType::kI32:
      return MPI_INT32_T;
    case DType::kI64:
      return MPI_INT64_T;
    case DType::kU32:
      return MPI_UINT32_T;
    case DType::kU64:
      return MPI_UINT64_T;
    case DType::kI16:
      return MPI_INT16_T;
    case DType::kU16:
      return MPI_UINT16_T;
    case DType::kBool:
      return MPI_C_BOOL;
    default:
      return MPI_DATATYPE_NULL;
  }
}

/// The MPI operation. For bools MPI has logical operations only.
MPI_Op op_of(DType dtype, ReduceOp op) {
  if (dtype == DType::kBool && op != ReduceOp::kAverage) {
    return op == ReduceOp::kProduct || op == ReduceOp::kMin ? MPI_LAND : MPI_LOR;
  }
  switch (op) {
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kMin:
      return MPI_MIN;
    case ReduceOp::kMax:
      return MPI_MAX;
    case ReduceOp::kProduct:
      return MPI_PROD;
    default:
      return MPI_OP_NULL;
  }
}

class MpiPeer final : public Peer {
 public:
  MpiPeer(const PeerStart& start, std::shared_ptr<MpiProcess> process, MPI_Comm communicator)
      : operation_(start.operation),
        type_(type_of(start.dtype)),
        op_(op_of(start.dtype, start.op)),
        root_(start.root),
        ranks_(start.ranks),
        process_(std::move(process)),
        communicator_(communicator) {
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  }
  ~MpiPeer() override { MPI_Comm_free(&communicator_); }

  Result<PreparedCall> prepare(ConstTensorView input, TensorView output) override;

 private:
  int perform(const void* from, int count_in, void* to, int count_out) const;

  const std::string operation_;
  const MPI_Datatype type_;
  const MPI_Op op_;
  const int root_;
  const int ranks_;
  const std::shared_ptr<MpiProcess> process_;
  MPI_Comm communicator_;
};

Result<PreparedCall> MpiPeer::prepare(ConstTensorView input, TensorView output) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (input.count > kMost || output.count > kMost) {
    return Status(Code::kInvalidArgument, "MPI counts elements in int: choose a smaller -e");
  }
  const void* from = input.data == output.data ? MPI_IN_PLACE : input.data;
  const int count_in = static_cast<int>(input.count);
  const int count_out = static_cast<int>(output.count);
  return PreparedCall([this, from, count_in, to = output.data, count_out] {
    return mpi_status(perform(from, count_in, to, count_out), "MPI");
  });
}

int MpiPeer::perform(const void* from, int count_in, void* to, int count_out) const {
  if (operation_ == "allreduce") {
    return MPI_Allreduce(from, to, count_out, type_, op_, communicator_);
  }
  if (operation_ == "all_gather") {
    return MPI_Allgather(from, count_in, type_, to, count_in, type_, communicator_);
  }
  if (operation_ == "reduce_scatter") {
    return MPI_Reduce_scatter_block(from, to, count_out, type_, op_, communicator_);
  }
  if (operation_ == "alltoall") {
    const int count = count_in / ranks_;
    return MPI_Alltoall(from, count, type_, to, count, type_, communicator_);
  }
  if (operation_ == "gather") {
    return MPI_Gather(from, count_in, type_, to, count_in, type_, root_, communicator_);
  }
  if (operation_ == "scatter") {
    return MPI_Scatter(from, count_out, type_, to, count_out, type_, root_, communicator_);
  }
  if (operation_ == "reduce") {
    return MPI_Reduce(from, to, count_out, type_, op_, root_, communicator_);
  }
  return MPI_Bcast(to, count_out, type_, root_, communicator_);
}

Result<std::unique_ptr<Peer>> open(const PeerStart& start) {
  if (type_of(start.dtype) == MPI_DATATYPE_NULL) {
    return Status(Code::kInvalidArgument, "MPI has no 16-bit floats: choose another -d");
  }
  if (op_of(start.dtype, start.op) == MPI_OP_NULL) {
    return Status(Code::kInvalidArgument, "MPI has no average: choose another -o");
  }
  auto process = MpiProcess::get(start.under_mpirun);
  if (!process.ok()) return process.status();
  // A communicator in the order of the job's ranks.
  MPI_Comm communicator = MPI_COMM_NULL;
  const int error = MPI_Comm_split(MPI_COMM_WORLD, 0, start.rank, &communicator);
  if (Status status = mpi_status(error, "MPI_Comm_split"); !status.ok()) return status;
  auto peer = std::make_unique<MpiPeer>(start, std::move(process).value(), communicator);
  int size = 0;
  MPI_Comm_size(communicator, &size);
  if (size == start.ranks) return std::unique_ptr<Peer>(std::move(peer));
  return Status(Code::kUnavailable, "MPI_COMM_WORLD has " + std::to_string(size) +
                                        " processes, but the job has " +
                                        std::to_string(start.ranks) + " ranks");
}

}  // namespace
}  // namespace elastic::bench

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const elastic::bench::PeerModule elastic_module = {
    {ELASTIC_MODULE_ABI, elastic::collectives::mpi_library}, elastic::bench::open};
