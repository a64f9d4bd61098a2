#include "collectives/backend/native/eager_allreduce.hpp"

#include <algorithm>
#include <cstring>

namespace elastic::collectives {

using transport::EagerChannel;
using transport::EagerSlot;
using transport::Fingerprint;
using transport::OpTag;

bool EagerAllreduce::find_channels() {
  channels_.clear();
  bool all = true;
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    const bool own = rank == mesh_.rank();
    channels_.push_back(own ? nullptr : mesh_.link(rank).eager_channel());
    all = all && (own || channels_.back() != nullptr);
  }
  slots_.resize(channels_.size());
  return all;
}

std::size_t EagerAllreduce::most_bytes() const {
  constexpr std::size_t kMostToOne = std::size_t{48} << 10;
  const auto others = static_cast<std::size_t>(std::max(mesh_.size() - 1, 1));
  return std::min(kMostToOne, EagerSlot::kMostBytes / others);
}

void EagerAllreduce::post_fingerprint(const OpTag& tag, const Fingerprint& fingerprint,
                                      std::span<const std::byte> more) {
  for (EagerChannel* channel : channels_) {
    if (channel != nullptr) channel->post(tag, fingerprint, more);
  }
}

Status EagerAllreduce::await(const OpTag& tag, const Fingerprint& fingerprint) {
  if (!come_soon(tag)) {
    if (Status status = wait_on(tag); !status.ok()) return status;
  }
  return check(fingerprint);
}

Status EagerAllreduce::await_unbegun(const OpTag& tag, const Fingerprint& fingerprint) {
  if (!come_soon(tag)) {
    // A rank that made another call may have sent frames instead.
    mesh_.begin(tag, fingerprint);
    if (Status status = wait_on(tag); !status.ok()) return status;
  }
  return check(fingerprint);
}

/// Eager allreduce of n ranks. Steps on each rank:
/// 1. Copy the tensor to a slot for each other rank, with tag and fingerprint.
/// 2. Wait for the slots of all other ranks: first by a short spin, then on the mesh, which also
///    finds frames of a rank with another call, and the end of the view.
/// 3. Compare fingerprints and lengths.
/// 4. Reduce all n tensors in rank order, so that all ranks have the same bits.
/// Cost: one exchange; a rank writes n - 1 copies of the tensor, reads n - 1, and reduces n - 1.
Status EagerAllreduce::run(const OpTag& tag, const Fingerprint& fingerprint,
                           std::span<const std::byte> input, std::byte* result,
                           const Reducer& reducer) {
  // With three or more ranks, `result` may overwrite `input` in place before it is read.
  const std::byte* own = input.data();
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    EagerChannel* const channel = channels_[static_cast<std::size_t>(rank)];
    if (channel == nullptr) continue;
    const std::byte* const posted = channel->post(tag, fingerprint, input);
    mesh_.link(rank).count(input.size());
    if (mesh_.size() > 2) own = posted;
  }
  if (Status status = await_unbegun(tag, fingerprint); !status.ok()) return status;
  if (Status status = check_lengths(input.size()); !status.ok()) return status;
  reduce(own, input.size(), result, reducer);
  return {};
}

bool EagerAllreduce::come_soon(const OpTag& tag) {
  std::fill(slots_.begin(), slots_.end(), nullptr);
  return mesh_.wait_briefly([&] { return all_here(tag); });
}

/// Also ends when something else comes first: frames of a rank that made another call, or the end
/// of the view.
Status EagerAllreduce::wait_on(const OpTag& tag) {
  return mesh_.run_until([&] { return all_here(tag); });
}

bool EagerAllreduce::all_here(const OpTag& tag) {
  bool all = true;
  for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
    if (channels_[rank] == nullptr || slots_[rank] != nullptr) continue;
    slots_[rank] = channels_[rank]->look(tag);
    all = all && slots_[rank] != nullptr;
  }
  return all;
}

Status EagerAllreduce::check(const Fingerprint& fingerprint) const {
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
    const EagerSlot* const slot = slots_[rank];
    if (slot == nullptr) continue;
    if (slot->fingerprint != fingerprint) {
      return transport::mismatch(fingerprint, static_cast<int>(rank), slot->fingerprint);
    }
  }
  return {};
}

Status EagerAllreduce::check_lengths(std::size_t bytes) const {
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
    const EagerSlot* const slot = slots_[rank];
    if (slot == nullptr || slot->bytes == bytes) continue;
    return Status(Code::kProtocol,
                  "an eager message of " + std::to_string(slot->bytes) + " bytes, not " +
                      std::to_string(bytes),
                  static_cast<int>(rank));
  }
  return {};
}

void EagerAllreduce::reduce(const std::byte* own, std::size_t bytes, std::byte* result,
                            const Reducer& reducer) const {
  const auto operand = [&](std::size_t rank) {
    return slots_[rank] == nullptr ? own : slots_[rank]->payload;
  };
  if (bytes == 0) return;
  if (slots_.size() == 1) {
    std::memmove(result, own, bytes);
    return;
  }
  const std::size_t elements = bytes / reducer.element;
  reducer.reduce(result, operand(0), operand(1), elements);
  for (std::size_t rank = 2; rank < slots_.size(); ++rank) {
    reducer.reduce(result, result, operand(rank), elements);
  }
}

}  // namespace elastic::collectives
