#include "collectives/backend/mpi/mpi_backend.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sched.h>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/reduce_ops.hpp"
#include "collectives/backend/mpi/mpi_operations.hpp"
#include "collectives/backend/mpi/mpi_process.hpp"
#include "collectives/backend/mpi/mpi_status.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::collectives {
namespace {

/// Large tensors are split into pieces of this size, several of them at a time. MPI allocates as
/// much memory as a nonblocking collective reduces in each call, and does not overlap its steps.
/// Steps of several small collectives overlap, and their memory is reused.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kPiecesAtATime = 8;

/// Polls of MPI before each further poll yields the processor. MPI offers no other way to wait.
constexpr int kSpins = 100;

/// Polls of MPI after a link has failed: the peer may have completed the call and exited, with its
/// data still on the way.
constexpr int kLastLooks = 1000;

/// Owned by the thread that runs the lane's operation. Any thread may call `abort`.
class MpiBackend final : public Backend {
 public:
  MpiBackend(ModuleView view, MpiProcess& process)
      : view_(std::move(view)),
        process_(process),
        communicator_(process.communicator(view_.lane)),
        buffers_(std::make_unique<Buffers>()) {}

  Status run(std::uint64_t position, const Call& call, Payload& payload) override;
  Status settle_error(std::uint64_t position, const std::vector<int>& ranks) override;
  Status hand_over(std::uint64_t position, const HandoverPairs& pairs, Parcel& parcel) override {
    return view_.native->hand_over(position, pairs, parcel);
  }
  void abort() noexcept override { view_.native->abort(); }
  int rank() const override { return view_.mesh->rank(); }
  int size() const override { return view_.mesh->size(); }
  const char* name() const override { return "mpi"; }

 private:
  /// The memory that MPI works on.
  struct Buffers {
    Buffer data;
    Buffer result;
    std::vector<std::uint64_t> blocks;
    std::vector<int> counts;
    std::vector<int> offsets;
  };

  bool is_left_to_native(const Call& call) const;
  Status meet(std::uint64_t position, const Call& call);
  Status perform(const Call& call, Payload& payload);
  Status allreduce(const Section& section, ReduceOp op);
  Status broadcast(int root, std::byte* data, std::size_t bytes);
  Status allgather(const Section& block, Payload& payload);
  Status reduce_scatter(const Section& section, ReduceOp op, Payload& payload);
  Status lay_out(const std::vector<std::uint64_t>& blocks);
  template <typename Start>
  Status in_pieces(std::size_t count, std::size_t element, const Start& start);
  Status wait(int error, MPI_Request& request);

  ModuleView view_;
  MpiProcess& process_;
  const MPI_Comm communicator_;
  std::unique_ptr<Buffers> buffers_;
  bool in_order_ = false;  // the ranks of the view are known to be MPI's
};

/// MPI's reductions combine element by element, and a lone rank's not at all.
bool MpiBackend::is_left_to_native(const Call& call) const {
  return !call.group.empty() || call.kind == Kind::kBarrier || call.kind == Kind::kTransfer ||
         call.kind == Kind::kMismatch || is_personal(call.kind) || !is_elementwise(call.redop) ||
         (size() == 1 && is_logical(call.redop));
}

/// 1. The ranks compare their calls over the links; a mismatch ends here (`meet`).
/// 2. MPI works on buffers of its own, which are swapped with the payload's.
/// 3. After a failure these buffers are leaked, because MPI may still write to them.
Status MpiBackend::run(std::uint64_t position, const Call& call, Payload& payload) {
  if (is_left_to_native(call)) {
    return view_.native->run(position, call, payload);
  }
  if (Status met = meet(position, call); !met.ok()) return met;
  std::swap(buffers_->data, payload.data);
  Status status = perform(call, payload);
  if (status.ok() || is_shared_error(status)) {
    std::swap(buffers_->data, payload.data);
    return status;
  }
  // MPI cannot cancel a collective, which may still write to its buffers: they are leaked.
  (void)buffers_.release();
  buffers_ = std::make_unique<Buffers>();
  process_.give_up();
  view_.mesh->abandon();
  if (status.code() != Code::kUnavailable) return status;
  return Status(Code::kPeerLost, status.message());  // which `make` for the next view explains
}

/// Waits for the other ranks, so that they learn the error before this rank leaves. A failure is
/// ignored: after the loss of a rank there is no further view, so no replay and no other result.
Status MpiBackend::settle_error(std::uint64_t position, const std::vector<int>& ranks) {
  if (Status met = view_.native->settle_error(position, ranks); !met.ok()) {
    log::debug("mpi: the other ranks may not have the error: {}", met.message());
  }
  return {};
}

/// Compares the calls of all ranks before any enters MPI, and in the first call also their ranks.
Status MpiBackend::meet(std::uint64_t position, const Call& call) {
  Call gate;
  gate.fingerprint = call.fingerprint;
  gate.error = call.error;
  Payload ranks;
  if (!in_order_) {
    gate.kind = Kind::kAllgather;
    gate.sections = {{DType::kI32, 1, 0}};
    ranks.data.resize(sizeof(std::int32_t));
    const std::int32_t mine = process_.rank();
    std::memcpy(ranks.data.data(), &mine, sizeof mine);
  }
  if (Status met = view_.native->run(position, gate, ranks); !met.ok() || in_order_) return met;
  for (std::int32_t each = 0; each < size(); ++each) {
    std::int32_t theirs = 0;
    std::memcpy(&theirs, ranks.data.data() + static_cast<std::size_t>(each) * sizeof theirs,
                sizeof theirs);
    if (theirs != each) {
      return Status(Code::kMismatch, "rank " + std::to_string(each) + " of the job is rank " +
                                         std::to_string(theirs) +
                                         " of MPI; leave ELASTIC_SLOT to mpirun");
    }
  }
  in_order_ = true;
  return {};
}

Status MpiBackend::perform(const Call& call, Payload& payload) {
  switch (call.kind) {
    case Kind::kAllreduce:
      for (const Section& section : call.sections) {
        if (Status status = allreduce(section, call.redop); !status.ok()) return status;
      }
      return {};
    case Kind::kBroadcast:
      return broadcast(call.root, buffers_->data.data(), extent(call.sections));
    case Kind::kAllgather:
      return allgather(call.sections.front(), payload);
    case Kind::kReduceScatter:
      return reduce_scatter(call.sections.front(), call.redop, payload);
    case Kind::kBarrier:
    case Kind::kTransfer:
    case Kind::kMismatch:
    case Kind::kAlltoall:
    case Kind::kGather:
    case Kind::kScatter:
    case Kind::kReduce:
    case Kind::kScan:
      break;  // left to native
  }
  return Status(Code::kInternal, "MPI: there is no such collective here");
}

/// Calls `start(first, count, request)` for every piece of `count` elements of `element` bytes, in
/// the same order on all ranks, and returns when all are complete.
template <typename Start>
Status MpiBackend::in_pieces(std::size_t count, std::size_t element, const Start& start) {
  const std::size_t most = kPieceBytes / element;
  std::array<MPI_Request, kPiecesAtATime> requests;
  requests.fill(MPI_REQUEST_NULL);  // complete, to MPI
  std::size_t next = 0;
  for (std::size_t first = 0; first < count; first += most) {
    MPI_Request& request = requests[next++ % kPiecesAtATime];
    if (Status status = wait(MPI_SUCCESS, request); !status.ok()) return status;
    const int error = start(first, static_cast<int>(std::min(most, count - first)), request);
    if (error != MPI_SUCCESS) return mpi_status(error, "MPI");
  }
  for (MPI_Request& request : requests) {
    if (Status status = wait(MPI_SUCCESS, request); !status.ok()) return status;
  }
  return {};
}

Status MpiBackend::allreduce(const Section& section, ReduceOp op) {
  const std::size_t element = size_of(section.dtype);
  std::byte* const data = buffers_->data.data() + section.offset;
  return in_pieces(section.count, element, [&](std::size_t first, int count, MPI_Request& request) {
    return MPI_Iallreduce(MPI_IN_PLACE, data + first * element, count, mpi_type(section.dtype),
                          mpi_op(section.dtype, op), communicator_, &request);
  });
}

Status MpiBackend::broadcast(int root, std::byte* data, std::size_t bytes) {
  return in_pieces(bytes, 1, [&](std::size_t first, int count, MPI_Request& request) {
    return MPI_Ibcast(data + first, count, MPI_BYTE, root, communicator_, &request);
  });
}

Status MpiBackend::allgather(const Section& block, Payload& payload) {
  Buffers& with = *buffers_;
  with.blocks.assign(static_cast<std::size_t>(size()), 0);
  with.blocks[static_cast<std::size_t>(rank())] = block.count;
  MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, with.blocks.data(), 1,
                             MPI_UINT64_T, communicator_, &request);
  if (Status status = wait(error, request); !status.ok()) return status;

  const Result<std::size_t> total = gathered_bytes("allgather", with.blocks, size_of(block.dtype));
  if (!total.ok()) return total.status();
  if (Status countable = lay_out(with.blocks); !countable.ok()) return countable;
  with.result.resize(total.value());
  error = MPI_Iallgatherv(with.data.data() + block.offset, static_cast<int>(block.count),
                          mpi_type(block.dtype), with.result.data(), with.counts.data(),
                          with.offsets.data(), mpi_type(block.dtype), communicator_, &request);
  if (Status status = wait(error, request); !status.ok()) return status;
  payload.form = Blocks{with.blocks};
  std::swap(with.data, with.result);
  return {};
}

Status MpiBackend::reduce_scatter(const Section& section, ReduceOp op, Payload& payload) {
  Buffers& with = *buffers_;
  const auto ranks = static_cast<std::size_t>(size());
  const auto begin = [&](std::size_t r) { return plan::part_begin(section.count, ranks, r); };
  with.blocks.clear();
  for (std::size_t r = 0; r < ranks; ++r) with.blocks.push_back(begin(r + 1) - begin(r));
  if (Status countable = lay_out(with.blocks); !countable.ok()) return countable;
  with.result.resize(with.blocks[static_cast<std::size_t>(rank())] * size_of(section.dtype));
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Ireduce_scatter(with.data.data() + section.offset, with.result.data(),
                                        with.counts.data(), mpi_type(section.dtype),
                                        mpi_op(section.dtype, op), communicator_, &request);
  if (Status status = wait(error, request); !status.ok()) return status;
  Blocks& blocks = payload.form.emplace<Blocks>();
  blocks.counts = with.blocks;
  blocks.of_this_rank = true;
  std::swap(with.data, with.result);
  return {};
}

/// Fills in counts and offsets of `blocks` in MPI's types. The error is the same on all ranks.
Status MpiBackend::lay_out(const std::vector<std::uint64_t>& blocks) {
  Buffers& with = *buffers_;
  with.counts.clear();
  with.offsets.clear();
  std::uint64_t before = 0;
  for (const std::uint64_t block : blocks) {
    with.offsets.push_back(static_cast<int>(before));
    with.counts.push_back(static_cast<int>(block));
    before += block;
    if (before > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
      return Status(Code::kMismatch,
                    "an allgather or reduce_scatter of more elements than MPI can count (2^31); "
                    "the backends native and gloo can");
    }
  }
  return {};
}

/// Waits until `request`, whose start returned `error`, is complete, or until the links have failed
/// or the view is to change.
Status MpiBackend::wait(int error, MPI_Request& request) {
  if (error != MPI_SUCCESS) return mpi_status(error, "MPI");
  Status links;
  int last_looks = 0;
  for (int looks = 0;; ++looks) {
    int complete = 0;
    const int tested = MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    if (tested != MPI_SUCCESS || complete != 0) return mpi_status(tested, "MPI_Test");
    if (links.ok()) links = view_.mesh->progress_and_check_peers();
    if (!links.ok() && (view_.mesh->aborted() || ++last_looks > kLastLooks)) return links;
    if (looks > kSpins) ::sched_yield();
  }
}

}  // namespace

Result<std::unique_ptr<Backend>> make_mpi_backend(ModuleView view) {
  MpiProcess& process = MpiProcess::instance();
  const Status served = process.serve(view.generation, view.mesh->size());
  if (!served.ok()) return served;
  return std::unique_ptr<Backend>(std::make_unique<MpiBackend>(std::move(view), process));
}

}  // namespace elastic::collectives
