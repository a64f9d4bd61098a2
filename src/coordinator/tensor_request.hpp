#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "elastic/types.hpp"

namespace elastic::coordinator {

/// The kind of a named request, and the only one. It is on the wire for later releases: ranks with
/// different kinds get a mismatch that describes both, and not a note that they cannot read.
inline constexpr std::uint8_t kAllreduceRequest = 0;

/// The shape of one tensor, as far as the ranks have to agree on it.
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

  std::uint64_t bytes() const;
  bool operator==(const TensorRequest&) const = default;
};

/// Bounds of a request: several requests have to fit into one note.
inline constexpr std::size_t kMaxNameBytes = 4096;
inline constexpr std::size_t kMaxTensorsInGroup = 8192;
inline constexpr std::uint64_t kMaxTensorElements = std::uint64_t{1} << 44;

/// kInvalidArgument if the request has no name or no tensors, or exceeds the bounds above.
Status validate(const TensorRequest& request);

/// "allreduce of 10 f32, sum"
std::string describe(const TensorRequest& request);

}  // namespace elastic::coordinator
