#include "collectives/backend/nccl/collectives/device_grouped_reduce_scatter.hpp"

#include "collectives/backend/nccl/collectives/nccl_group.hpp"
#include "collectives/backend/nccl/collectives/nccl_types.hpp"
#include "collectives/backend/nccl/nccl_api.hpp"
#include "collectives/backend/payload.hpp"

namespace elastic::collectives::nccl {

namespace {

/// From this size on a call of NCCL for one tensor costs less than a copy of the tensor.
constexpr std::size_t kDirectFrom = std::size_t{1} << 20;

std::size_t bytes_of_all(std::span<const DeviceTensor> tensors) {
  std::size_t bytes = 0;
  for (const DeviceTensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

bool is_direct(const DeviceTensor& tensor, std::size_t size) {
  return tensor.count % size == 0 && tensor.bytes() >= kDirectFrom;
}

std::vector<DeviceTensor> chosen(std::span<const DeviceTensor> tensors, std::size_t size,
                                 bool direct) {
  std::vector<DeviceTensor> some;
  for (const DeviceTensor& tensor : tensors) {
    if (tensor.count > 0 && is_direct(tensor, size) == direct) some.push_back(tensor);
  }
  return some;
}

std::vector<std::size_t> counts_of(std::span<const DeviceTensor> tensors) {
  std::vector<std::size_t> counts;
  for (const DeviceTensor& tensor : tensors) counts.push_back(tensor.count);
  return counts;
}

}  // namespace

DeviceGroupedReduceScatter::DeviceGroupedReduceScatter(Where where,
                                                       std::span<const DeviceTensor> tensors,
                                                       ReduceOp op, std::uint32_t divisor, int rank,
                                                       int size)
    : DeviceWork(std::move(where)),
      dtype_(tensors.front().dtype),
      op_(op),
      divisor_(divisor),
      rank_(static_cast<std::size_t>(rank)),
      size_(static_cast<std::size_t>(size)),
      packed_(chosen(tensors, size_, false)),
      direct_(chosen(tensors, size_, true)),
      bytes_(bytes_of_all(tensors)),
      slots_(counts_of(packed_), element(), size_) {}

/// The result has the slot of this rank, then its parts of the other tensors. No other rank asks
/// for it, so that its layout is this rank's own business.
Status DeviceGroupedReduceScatter::allocate() {
  std::vector<DeviceTensor> parts;
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    DeviceTensor part = packed_[i];
    part.count = slots_.count(i, rank_);
    part.offset = slots_.place(i) * element();
    if (part.count > 0) parts.push_back(part);
  }
  std::size_t end = slots_.slot() * element();
  places_.clear();
  for (DeviceTensor part : direct_) {
    part.count /= size_;
    part.offset = end;
    places_.push_back(end);
    end = aligned(part.end());
    parts.push_back(part);
  }
  if (Status made = make_result(parts, divisor_, end); !made.ok()) return made;
  if (packed_.empty()) return {};
  auto lent = device()->lend(slots_.total() * element());
  if (!lent.ok()) return lent.status();
  memory_ = std::move(lent).value();
  return {};
}

/// Copies the parts to the slots, with what fills the room of smaller ones. NCCL also reduces the
/// rest of a slot, which is garbage.
Status DeviceGroupedReduceScatter::pack(void* via) {
  if (packed_.empty()) return {};
  std::vector<DeviceTensor> parts;
  for (std::size_t rank = 0; rank < size_; ++rank) {
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      DeviceTensor part = packed_[i];
      part.input += slots_.begin(i, rank) * element();
      part.count = slots_.largest(i);
      part.offset = (rank * slots_.slot() + slots_.place(i)) * element();
      parts.push_back(part);
    }
  }
  return device()->mover().pack(parts, reinterpret_cast<std::uintptr_t>(memory_.data()), via);
}

std::vector<DeviceGroupedReduceScatter::Reduction> DeviceGroupedReduceScatter::reductions() const {
  std::vector<Reduction> all;
  if (!packed_.empty()) {
    all.push_back(
        {reinterpret_cast<std::uintptr_t>(memory_.data()), result().address(), slots_.slot()});
  }
  for (std::size_t i = 0; i < direct_.size(); ++i) {
    all.push_back({direct_[i].input, result().address() + places_[i], direct_[i].count / size_});
  }
  return all;
}

Status DeviceGroupedReduceScatter::launch(TimePoint until, const Meanwhile& meanwhile) {
  const std::vector<Reduction> all = reductions();
  if (all.empty()) return {};
  return communicator().perform(
      "ncclGroupEnd",
      [&](const Api& api, ncclComm* comm) -> int {
        return in_group(api, all, [&](const Reduction& each) {
          return api.reduce_scatter(pointer_to(each.from), pointer_to(each.to), each.count,
                                    type_of(dtype_), op_of(dtype_, op_), comm,
                                    static_cast<cudaStream_t>(stream()));
        });
      },
      until, meanwhile);
}

}  // namespace elastic::collectives::nccl
