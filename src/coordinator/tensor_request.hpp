#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "elastic/scale.hpp"
#include "elastic/types.hpp"

namespace elastic::coordinator {

/// The kinds of named requests. The numbers are on the wire: ranks with different kinds get a
/// mismatch that describes both, also if one of them does not know the other's. Only allreduces are
/// fused.
enum RequestKind : std::uint8_t {
  kAllreduceRequest,
  kBroadcastRequest,
  kAllgatherRequest,
  kReduceScatterRequest,
  kBarrierRequest,
  kAlltoallRequest,
  kGatherRequest,
  kScatterRequest,
  kReduceRequest,
  kScanRequest,
  kMessageRequest,
  kJoinRequest,
  kUnnamedRequest,  ///< of a group, whose ranks compare their calls themselves
  kExscanRequest,
  kSparseRequest,  ///< an allgather of rows
};

/// Whether calls of this kind go on without the ranks that have joined: a neutral element stands
/// for their input.
constexpr bool goes_on_without_joined(std::uint8_t kind) {
  return kind == kAllreduceRequest || kind == kBarrierRequest;
}

/// The shape of one tensor, as far as the ranks have to agree on it before the call: where they may
/// differ in count, it is 0. The call itself compares the rest.
struct TensorShape {
  DType dtype = DType::kF32;
  std::uint64_t count = 0;
  bool operator==(const TensorShape&) const = default;
};

/// One named asynchronous call: a tensor, or a group of tensors that stays together.
struct TensorRequest {
  std::string name;
  std::uint8_t kind = kAllreduceRequest;
  ReduceOp op = ReduceOp::kSum;
  std::vector<TensorShape> tensors;
  Scale scale{1, 1};
  /// The backend takes this rank's tensors on their device. Each rank's own business: it is neither
  /// sent nor compared.
  bool on_device = false;

  std::uint64_t bytes() const;
  bool operator==(const TensorRequest& other) const {
    return name == other.name && kind == other.kind && op == other.op && tensors == other.tensors &&
           scale == other.scale;
  }
};

/// A named call that only some ranks of the view make.
struct GroupRequest {
  TensorRequest request;
  std::vector<int> ranks;  ///< ascending
  bool operator==(const GroupRequest&) const = default;
};

/// Bounds of a request: several requests have to fit into one note.
inline constexpr std::size_t kMaxNameBytes = 4096;
inline constexpr std::size_t kMaxTensorsInGroup = 8192;
inline constexpr std::uint64_t kMaxTensorElements = std::uint64_t{1} << 44;

/// kInvalidArgument if the request has no name or no tensors, or exceeds the bounds above.
Status validate(const TensorRequest& request);

/// The request of `join`, which has one name in the whole job: a rank joins once at a time.
TensorRequest join_request();

/// "named allreduce 'grad'", "call #3 of the group 'per host'", "message #1 with tag 7": a call
/// that is under way, for users.
std::string describe_call(std::uint8_t kind, const std::string& name);
/// "allreduce of 10 f32, sum"
std::string describe(const TensorRequest& request);
/// "allreduce of 10 f32, sum, for ranks 0, 2"
std::string describe(const GroupRequest& request);

}  // namespace elastic::coordinator
