#include "collectives/backend/nccl/collectives/work_for.hpp"

#include <algorithm>
#include <utility>

#include "collectives/backend/nccl/collectives/device_allgather.hpp"
#include "collectives/backend/nccl/collectives/device_allreduce.hpp"
#include "collectives/backend/nccl/collectives/device_broadcast.hpp"
#include "collectives/backend/nccl/collectives/device_grouped_allgather.hpp"
#include "collectives/backend/nccl/collectives/device_grouped_reduce_scatter.hpp"
#include "collectives/backend/nccl/collectives/device_reduce_scatter.hpp"
#include "collectives/backend/nccl/collectives/nccl_types.hpp"

namespace elastic::collectives::nccl {

bool is_grouped_call(const Call& call) {
  return (call.fingerprint.redop & transport::Fingerprint::kGrouped) != 0 &&
         (call.kind == Kind::kAllgather || call.kind == Kind::kReduceScatter);
}

bool is_for_nccl(Kind kind) {
  return kind == Kind::kAllreduce || kind == Kind::kBroadcast || kind == Kind::kAllgather ||
         kind == Kind::kReduceScatter;
}

bool is_for_nccl(const Call& call, std::span<const DeviceTensor> tensors) {
  if (!is_for_nccl(call.kind)) return false;
  // A tensor without memory on the device is not among the tensors here.
  const bool is_grouped = is_grouped_call(call);
  if (is_grouped && (tensors.empty() || tensors.size() != call.grouped.size())) return false;
  if (call.kind != Kind::kAllreduce && call.kind != Kind::kReduceScatter) return true;
  return can_reduce(call.redop) && std::ranges::all_of(tensors, [](const DeviceTensor& tensor) {
           return can_reduce(tensor.wire.dtype);
         });
}

const char* plural(const Call& call) {
  const bool is_grouped = is_grouped_call(call);
  switch (call.kind) {
    case Kind::kBroadcast:
      return "broadcasts";
    case Kind::kAllgather:
      return is_grouped ? "grouped_allgathers" : "allgathers";
    case Kind::kReduceScatter:
      return is_grouped ? "grouped_reduce_scatters" : "reduce_scatters";
    default:
      return "allreduces";
  }
}

std::unique_ptr<DeviceWork> work_for(DeviceWork::Where where, const Call& call,
                                     std::span<const DeviceTensor> tensors,
                                     std::span<const std::uint64_t> counts, int rank, int size) {
  const std::uint32_t divisor =
      call.redop == ReduceOp::kAverage ? static_cast<std::uint32_t>(size) : 1;
  if (is_grouped_call(call)) {
    if (call.kind == Kind::kAllgather) {
      return std::make_unique<DeviceGroupedAllgather>(std::move(where), tensors, counts, rank);
    }
    return std::make_unique<DeviceGroupedReduceScatter>(std::move(where), tensors, call.redop,
                                                        divisor, rank, size);
  }
  switch (call.kind) {
    case Kind::kBroadcast:
      return std::make_unique<DeviceBroadcast>(std::move(where), tensors.front(), call.root,
                                               rank == call.root);
    case Kind::kAllgather:
      return std::make_unique<DeviceAllgather>(std::move(where), tensors.front(), counts);
    case Kind::kReduceScatter:
      return std::make_unique<DeviceReduceScatter>(std::move(where), tensors.front(), call.redop,
                                                   divisor, counts, rank);
    default:
      return std::make_unique<DeviceAllreduce>(std::move(where), tensors, call.redop, divisor);
  }
}

}  // namespace elastic::collectives::nccl
