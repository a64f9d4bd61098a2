// The peer for NCCL's collectives. Each call is queued on the rank's stream and waited for, because
// a call of elastic also returns only when the result is there.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <nccl.h>
#include <string>
#include <unistd.h>
#include <utility>

#include "benchmarks/peers/peer.hpp"
#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/nccl_library.hpp"

namespace elastic::bench {
namespace {

using collectives::nccl::NcclLibrary;

using Library = std::shared_ptr<const NcclLibrary>;

Status outcome(const Library& library, const char* call, ncclResult_t result) {
  if (result == ncclSuccess) return {};
  const char* const last = library->api().get_last_error(nullptr);
  return Status(Code::kUnavailable, std::string(call) + ": " +
                                        library->api().get_error_string(result) +
                                        (last != nullptr ? std::string(" (") + last + ")" : ""));
}

class NcclPeer final : public Peer {
 public:
  NcclPeer(const PeerStart& start, Library library, ncclComm_t communicator)
      : operation_(start.operation),
        type_(collectives::nccl::type_of(start.dtype)),
        op_(collectives::nccl::op_of(start.dtype, start.op)),
        root_(start.root),
        device_(*start.device),
        library_(std::move(library)),
        communicator_(communicator) {}
  ~NcclPeer() override { library_->api().comm_destroy(communicator_); }

  Result<PreparedCall> prepare(ConstTensorView input, TensorView output) override {
    return PreparedCall([this, input, output] {
      if (Status status = outcome(library_, "a collective of NCCL", queue(input, output));
          !status.ok()) {
        return status;
      }
      device_.wait();
      return Status();
    });
  }

 private:
  /// Queues one call. The blocks or parts of all ranks have the same size.
  ncclResult_t queue(const ConstTensorView& input, const TensorView& output) {
    const auto& api = library_->api();
    auto* const stream = static_cast<cudaStream_t>(device_.stream);
    if (operation_ == "broadcast") {
      return api.broadcast(input.data, output.data, input.count, type_, root_, communicator_,
                           stream);
    }
    if (operation_ == "all_gather") {
      return api.all_gather(input.data, output.data, input.count, type_, communicator_, stream);
    }
    if (operation_ == "reduce_scatter") {
      return api.reduce_scatter(input.data, output.data, output.count, type_, op_, communicator_,
                                stream);
    }
    return api.all_reduce(input.data, output.data, output.count, type_, op_, communicator_, stream);
  }

  const std::string operation_;
  const ncclDataType_t type_;
  const ncclRedOp_t op_;
  const int root_;
  const PeerDevice device_;
  const Library library_;
  const ncclComm_t communicator_;
};

/// Identifies the device in the way in which NCCL distinguishes devices.
std::string name_of_device(const PeerStart& start) {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return "CUDA device " + start.device->identity + " of " + start.nccl_host.value_or(host);
}

Status check_own_devices(const PeerStart& start) {
  std::map<std::string, int> owners;
  int rank = 0;
  for (const std::string& device : start.exchange(name_of_device(start))) {
    const auto [owner, added] = owners.emplace(device, rank);
    if (!added) {
      return Status(Code::kInvalidArgument,
                    "ranks " + std::to_string(owner->second) + " and " + std::to_string(rank) +
                        " are both on " + device +
                        ", and NCCL needs a device for each rank: start fewer ranks (or, to try "
                        "things out on one device, each with an NCCL_HOSTID of its own)");
    }
    ++rank;
  }
  return {};
}

Result<ncclComm_t> make_communicator(const PeerStart& start, const Library& library) {
  ncclUniqueId id{};
  Status made;
  if (start.rank == 0) {
    made = outcome(library, "ncclGetUniqueId", library->api().get_unique_id(&id));
  }
  // Also after a failure, because the other ranks wait in this exchange.
  const std::string answers = start.exchange(
      start.rank == 0 && made.ok() ? std::string(id.internal, sizeof(id.internal)) : "")[0];
  if (!made.ok()) return made;
  if (answers.size() != sizeof(id.internal)) {
    return Status(Code::kUnavailable, "rank 0 could not make NCCL's unique id");
  }
  std::memcpy(id.internal, answers.data(), answers.size());
  ncclComm_t communicator = nullptr;
  const ncclResult_t result =
      library->api().comm_init_rank_config(&communicator, start.ranks, id, start.rank, nullptr);
  if (Status status = outcome(library, "ncclCommInitRankConfig", result); !status.ok())
    return status;
  return communicator;
}

Result<std::unique_ptr<Peer>> open(const PeerStart& start) {
  if (!start.device) {
    return Status(Code::kInvalidArgument, "NCCL takes tensors on CUDA devices: give --device cuda");
  }
  constexpr std::array kMeasured = {"allreduce", "all_gather", "reduce_scatter", "broadcast"};
  if (std::ranges::find(kMeasured, start.operation) == kMeasured.end()) {
    return Status(Code::kInvalidArgument, "NCCL is not measured by " + start.operation);
  }
  if (start.op == ReduceOp::kAverage) {
    return Status(Code::kInvalidArgument,
                  "NCCL's average rounds otherwise, and so cannot be checked: choose another -o");
  }
  if (!collectives::nccl::can_reduce(start.dtype)) {
    return Status(Code::kInvalidArgument, "NCCL has no integers of 16 bits: choose another -d");
  }
  auto library = NcclLibrary::load(start.nccl_library);
  // If one rank lacks the library, all ranks fail.
  const auto answers = start.exchange(library.ok() ? "" : library.status().message());
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank].empty()) continue;
    return Status(Code::kUnavailable, "rank " + std::to_string(rank) + ": " + answers[rank]);
  }
  if (Status status = check_own_devices(start); !status.ok()) return status;
  auto communicator = make_communicator(start, library.value());
  if (!communicator.ok()) return communicator.status();
  return std::unique_ptr<Peer>(
      std::make_unique<NcclPeer>(start, std::move(library).value(), communicator.value()));
}

std::string describe() {
  return "NCCL, built with the headers of " + collectives::nccl::version_text(NCCL_VERSION_CODE);
}

Result<std::string> find_library(const std::string& file) {
  const auto library = NcclLibrary::load(file);
  if (!library.ok()) return library.status();
  return library.value()->describe();
}

}  // namespace
}  // namespace elastic::bench

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const elastic::bench::PeerModule elastic_module = {
    {ELASTIC_MODULE_ABI, elastic::bench::describe, elastic::bench::find_library},
    elastic::bench::open};
