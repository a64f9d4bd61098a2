#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/module_file.hpp"
#include "base/status.hpp"
#include "elastic/types.hpp"

namespace elastic::bench {

/// An operation on fixed tensors, which can be performed repeatedly.
using PreparedCall = std::function<Status()>;

/// The device of a rank's tensors.
struct PeerDevice {
  std::string identity;        ///< identifies the device on its host
  void* stream = nullptr;      ///< CUDA stream of the main thread's current device
  std::function<void()> wait;  ///< waits for the work on the stream; throws elastic::Error
};

/// The arguments for opening a peer.
struct PeerStart {
  std::string variant;    ///< of the library: the part of the peer's name after the colon
  std::string operation;  ///< see collective_names
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  ///< of a broadcast
  int rank = 0;
  int ranks = 1;
  bool under_mpirun = false;
  std::string interface;             ///< network interface that this rank can be reached at
  std::optional<PeerDevice> device;  ///< none: the tensors are in host memory
  std::string nccl_library;          ///< see Options
  /// The name of this host in NCCL. None: the host's own name.
  std::optional<std::string> nccl_host;
  /// An allgather of text: returns each rank's `mine`, by rank. All ranks call it equally often.
  std::function<std::vector<std::string>(const std::string& mine)> exchange;
};

/// A collective of another library, for comparison. It is called as the library's users call it: on
/// the same tensors, over the library's own connections, without elastic. Owned by the main thread.
/// All ranks call it and its prepared calls in the same order. Throws the library's exceptions.
class Peer {
 public:
  virtual ~Peer() = default;

  /// Prepares a call. In place, `output` begins at the address of `input`. The memory of both must
  /// outlive the peer.
  virtual Result<PreparedCall> prepare(ConstTensorView input, TensorView output) = 0;
};

/// The export of the shared object with a library's peers.
struct PeerModule {
  ModuleHead head;
  /// kInvalidArgument: the library lacks this operation; kUnavailable: it cannot start here.
  Result<std::unique_ptr<Peer>> (*open)(const PeerStart& start);
};
static_assert(std::is_standard_layout_v<PeerModule>, "its head is found at its own address");

}  // namespace elastic::bench
