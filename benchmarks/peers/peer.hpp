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

/// An operation on certain tensors, to be performed again and again.
using PreparedCall = std::function<Status()>;

/// The device that a rank has its tensors on.
struct PeerDevice {
  std::string identity;        ///< among the devices of its host
  void* stream = nullptr;      ///< CUDA's, of the device that is current for the main thread
  std::function<void()> wait;  ///< for what is queued on the stream; throws elastic::Error
};

/// What a peer is opened for.
struct PeerStart {
  std::string variant;    ///< of the library: what follows the colon in the peer's name
  std::string operation;  ///< see collective_names
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  ///< of a broadcast
  int rank = 0;
  int ranks = 1;
  bool under_mpirun = false;
  std::string interface;             ///< whose address this rank can be reached at
  std::optional<PeerDevice> device;  ///< where tensors are not in host memory
  std::string nccl_library;          ///< see Options
  /// What NCCL takes for the name of this host. None: the host's own.
  std::optional<std::string> nccl_host;
  /// What each rank has to say, by rank. All ranks call it alike.
  std::function<std::vector<std::string>(const std::string& mine)> exchange;
};

/// A collective of another library, called as its users call it: on their own tensors, over its own
/// connections, with nothing of elastic around. Belongs to the main thread. All ranks call it, and
/// what it prepares, alike. Throws what the library throws.
class Peer {
 public:
  virtual ~Peer() = default;

  /// `output` begins where `input` does when the result is to be in place. Both have to be there
  /// for as long as the peer is.
  virtual Result<PreparedCall> prepare(ConstTensorView input, TensorView output) = 0;
};

/// What the shared object of a library's peers exports.
struct PeerModule {
  ModuleHead head;
  /// kInvalidArgument says what the library does not have; kUnavailable, what it lacks to begin.
  Result<std::unique_ptr<Peer>> (*open)(const PeerStart& start);
};
static_assert(std::is_standard_layout_v<PeerModule>, "its head is found at its own address");

}  // namespace elastic::bench
