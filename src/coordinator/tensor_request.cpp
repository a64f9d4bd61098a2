#include "coordinator/tensor_request.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/dtype_names.hpp"
#include "base/join_name.hpp"
#include "base/rank_list.hpp"
#include "base/reduce_ops.hpp"
#include "coordinator/group_names.hpp"

namespace elastic::coordinator {
namespace {

std::string name_of_kind(std::uint8_t kind) {
  static constexpr std::array kNames = {"allreduce",
                                        "broadcast",
                                        "allgather",
                                        "reduce_scatter",
                                        "barrier",
                                        "alltoall",
                                        "gather",
                                        "scatter",
                                        "reduce",
                                        "scan",
                                        "message",
                                        "join",
                                        "call without a name",
                                        "exscan",
                                        "sparse_allreduce"};
  return kind < kNames.size() ? kNames[kind] : "call of kind " + std::to_string(kind);
}

bool reduces(std::uint8_t kind) {
  return kind == kAllreduceRequest || kind == kReduceScatterRequest || kind == kReduceRequest ||
         kind == kScanRequest || kind == kExscanRequest;
}
/// Whether a request has no number of elements, because ranks may differ in it.
bool may_differ_in_count(std::uint8_t kind) {
  return kind == kAllgatherRequest || kind == kAlltoallRequest || kind == kGatherRequest ||
         kind == kScatterRequest || kind == kMessageRequest;
}

std::string describe(const TensorShape& shape) {
  return std::to_string(shape.count) + " " + dtype_name(shape.dtype);
}

std::string describe(const Scale& scale) {
  if (scales_nothing(scale)) return "";
  std::array<char, 64> text;
  const int length = std::snprintf(text.data(), text.size(), ", times %g before and %g after",
                                   scale.before(), scale.after());
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

std::uint64_t TensorRequest::bytes() const {
  std::uint64_t total = 0;
  for (const TensorShape& tensor : tensors) total += tensor.count * size_of(tensor.dtype);
  return total;
}

Status validate(const TensorRequest& request) {
  if (request.name.empty()) {
    return Status(Code::kInvalidArgument, "a named tensor needs a name that is not empty");
  }
  if (request.name.size() > kMaxNameBytes) {
    return Status(Code::kInvalidArgument,
                  "a tensor's name has " + std::to_string(request.name.size()) +
                      " bytes; at most " + std::to_string(kMaxNameBytes) + " are possible");
  }
  const std::string who = "tensor " + user_name(request.name) + ": ";
  if (request.tensors.empty()) {
    return Status(Code::kInvalidArgument, who + "the group has no tensors");
  }
  if (request.tensors.size() > kMaxTensorsInGroup) {
    return Status(Code::kInvalidArgument,
                  who + "the group has " + std::to_string(request.tensors.size()) +
                      " tensors; at most " + std::to_string(kMaxTensorsInGroup) + " are possible");
  }
  for (const TensorShape& tensor : request.tensors) {
    if (const std::string why = refusal(request.op, tensor.dtype); !why.empty()) {
      return Status(Code::kInvalidArgument, who + why);
    }
    if (const std::string why = refusal(request.scale, tensor.dtype); !why.empty()) {
      return Status(Code::kInvalidArgument, who + why);
    }
    if (tensor.count > kMaxTensorElements) {
      return Status(Code::kInvalidArgument, who + describe(tensor) + " is more than is possible");
    }
  }
  return {};
}

TensorRequest join_request() {
  return {kJoinName, kJoinRequest, ReduceOp::kMax, {{DType::kI64, 1}}};
}

std::string describe_call(std::uint8_t kind, const std::string& name) {
  if (kind == kUnnamedRequest) return "call " + user_name(name);
  if (kind == kMessageRequest || kind == kJoinRequest) {
    return name_of_kind(kind) + (kind == kJoinRequest ? "" : " " + user_name(name));
  }
  return "named " + name_of_kind(kind) + " " + user_name(name);
}

std::string describe(const TensorRequest& request) {
  constexpr std::size_t kShown = 8;
  std::string text = name_of_kind(request.kind);
  if (request.kind == kBarrierRequest || request.kind == kJoinRequest ||
      request.kind == kUnnamedRequest || request.kind == kSparseRequest) {
    return text;
  }
  if (may_differ_in_count(request.kind) && request.tensors.size() == 1) {
    return text + " of " + dtype_name(request.tensors.front().dtype);
  }
  text += " of ";
  if (request.tensors.size() != 1) {
    text += "a group of " + std::to_string(request.tensors.size()) + " tensors (";
  }
  const std::size_t shown = std::min(kShown, request.tensors.size());
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += ", ";
    text += describe(request.tensors[i]);
  }
  if (shown < request.tensors.size()) text += ", ...";
  if (request.tensors.size() != 1) text += ")";
  if (!reduces(request.kind)) return text;
  return text + ", " + reduce_op_name(request.op) + describe(request.scale);
}

std::string describe(const GroupRequest& request) {
  return describe(request.request) + ", for " +
         rank_list({request.ranks.begin(), request.ranks.end()});
}

}  // namespace elastic::coordinator
