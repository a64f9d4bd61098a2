// NCCL's allreduce, called directly: each call is queued on the rank's stream, and waited for,
// since one of elastic's returns when the result is there, too.
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <nccl.h>
#include <string>
#include <unistd.h>
#include <utility>

#include "benchmarks/peers/peer.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"
#include "collectives/backend/nccl/nccl_library.hpp"

namespace elastic::bench {
namespace {

using collectives::nccl::NcclLibrary;

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kI8:
      return ncclInt8;
    case DType::kU8:
      return ncclUint8;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      break;
  }
  return ncclInt64;
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kProduct:
      return ncclProd;
    default:
      return ncclSum;
  }
}

/// The library, with the call that is measured.
struct Nccl {
  std::shared_ptr<const NcclLibrary> library;
  decltype(&::ncclAllReduce) all_reduce = nullptr;

  static Result<Nccl> load();
  Status outcome(const char* call, ncclResult_t result) const;
};

Result<Nccl> Nccl::load() {
  const char* const named = std::getenv("ELASTIC_NCCL_LIBRARY");
  auto library = NcclLibrary::load(named == nullptr ? "" : named);
  if (!library.ok()) return library.status();
  Nccl nccl{std::move(library).value()};
  void* const handle = ::dlopen(nccl.library->file().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) {
    nccl.all_reduce = reinterpret_cast<decltype(all_reduce)>(::dlsym(handle, "ncclAllReduce"));
  }
  if (nccl.all_reduce != nullptr) return nccl;
  return Status(Code::kUnavailable, nccl.library->describe() + " has no ncclAllReduce");
}

Status Nccl::outcome(const char* call, ncclResult_t result) const {
  if (result == ncclSuccess) return {};
  const collectives::nccl::Api& api = library->api();
  const char* const last = api.get_last_error(nullptr);
  return Status(Code::kUnavailable, std::string(call) + ": " + api.get_error_string(result) +
                                        (last != nullptr ? std::string(" (") + last + ")" : ""));
}

class NcclPeer final : public Peer {
 public:
  NcclPeer(const PeerStart& start, Nccl nccl, ncclComm_t communicator)
      : type_(type_of(start.dtype)),
        op_(op_of(start.op)),
        device_(*start.device),
        nccl_(std::move(nccl)),
        communicator_(communicator) {}
  ~NcclPeer() override { nccl_.library->api().comm_destroy(communicator_); }

  Result<PreparedCall> prepare(ConstTensorView input, TensorView output) override {
    return PreparedCall([this, input, output] {
      const ncclResult_t queued =
          nccl_.all_reduce(input.data, output.data, output.count, type_, op_, communicator_,
                           static_cast<cudaStream_t>(device_.stream));
      if (Status status = nccl_.outcome("ncclAllReduce", queued); !status.ok()) return status;
      device_.wait();
      return Status();
    });
  }

 private:
  const ncclDataType_t type_;
  const ncclRedOp_t op_;
  const PeerDevice device_;
  const Nccl nccl_;
  const ncclComm_t communicator_;
};

/// As NCCL tells devices apart.
std::string name_of_device(const PeerDevice& device) {
  const char* const set = std::getenv("NCCL_HOSTID");
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return "CUDA device " + device.identity + " of " + (set == nullptr ? host : set);
}

Status check_own_devices(const PeerStart& start) {
  std::map<std::string, int> owners;
  int rank = 0;
  for (const std::string& device : start.exchange(name_of_device(*start.device))) {
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

Result<ncclComm_t> make_communicator(const PeerStart& start, const Nccl& nccl) {
  ncclUniqueId id{};
  Status made;
  if (start.rank == 0) {
    made = nccl.outcome("ncclGetUniqueId", nccl.library->api().get_unique_id(&id));
  }
  // Also where it failed: the others wait for what is said here.
  const std::string said = start.exchange(
      start.rank == 0 && made.ok() ? std::string(id.internal, sizeof(id.internal)) : "")[0];
  if (!made.ok()) return made;
  if (said.size() != sizeof(id.internal)) {
    return Status(Code::kUnavailable, "rank 0 could not make NCCL's unique id");
  }
  std::memcpy(id.internal, said.data(), said.size());
  ncclComm_t communicator = nullptr;
  const ncclResult_t result = nccl.library->api().comm_init_rank_config(&communicator, start.ranks,
                                                                        id, start.rank, nullptr);
  if (Status status = nccl.outcome("ncclCommInitRankConfig", result); !status.ok()) return status;
  return communicator;
}

Result<std::unique_ptr<Peer>> open(const PeerStart& start) {
  if (!start.device) {
    return Status(Code::kInvalidArgument, "NCCL takes tensors on CUDA devices: give --device cuda");
  }
  if (start.op == ReduceOp::kAverage) {
    return Status(Code::kInvalidArgument,
                  "NCCL's average rounds otherwise, and so cannot be checked: choose another -o");
  }
  auto nccl = Nccl::load();
  // All ranks together, whichever of them lacks it.
  const auto said = start.exchange(nccl.ok() ? "" : nccl.status().message());
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    if (said[rank].empty()) continue;
    return Status(Code::kUnavailable, "rank " + std::to_string(rank) + ": " + said[rank]);
  }
  if (Status status = check_own_devices(start); !status.ok()) return status;
  auto communicator = make_communicator(start, nccl.value());
  if (!communicator.ok()) return communicator.status();
  return std::unique_ptr<Peer>(
      std::make_unique<NcclPeer>(start, std::move(nccl).value(), communicator.value()));
}

std::string describe() {
  const auto nccl = Nccl::load();
  return nccl.ok() ? nccl.value().library->describe() : nccl.status().message();
}

}  // namespace
}  // namespace elastic::bench

// NOLINTNEXTLINE(readability-identifier-naming): a symbol's name
extern "C" [[gnu::visibility("default")]] const elastic::bench::PeerModule elastic_module = {
    {ELASTIC_MODULE_ABI, elastic::bench::describe}, elastic::bench::open};
