#include "collectives/backend/native/shared_allreduce.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "collectives/kernels/copy.hpp"
#include "collectives/kernels/reduce.hpp"
#include "collectives/plan/parts.hpp"
#include "collectives/transport/ring/full_fence.hpp"

namespace elastic::collectives {

using transport::ArenaView;
using transport::EagerSlot;
using transport::Fingerprint;
using transport::OpTag;

namespace {

/// Size of the pieces that a rank works on, so that memory which it reads or writes twice is still
/// in the cache. A multiple of the size of every dtype.
constexpr std::size_t kPieceBytes = 64 * 1024;

/// Other cores read the output next. Reading it from memory is several times as fast as from the
/// cache of this core, if the cores share no cache.
constexpr kernels::Store kStore = kernels::Store::kNonTemporal;

}  // namespace

std::span<const std::byte> SharedAllreduce::offer(const OpTag& tag, const Fingerprint& fingerprint,
                                                  std::span<const ZeroCopyTensor> tensors) {
  offered_.clear();
  if (!readable_everywhere() || tensors.empty()) return {};
  if (tensors.size() * sizeof(Place) > EagerSlot::kMostBytes) return {};
  std::vector<Place> places;
  for (const ZeroCopyTensor& tensor : tensors) {
    const auto input = arena_->offset_of(tensor.input, tensor.bytes());
    const auto output = arena_->offset_of(tensor.output, tensor.bytes());
    if (!input || !output) return {};
    places.push_back({*input, *output});
  }
  offered_ = std::move(places);
  tag_ = tag;
  fingerprint_ = fingerprint;
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    if (rank != mesh_.rank()) mesh_.link(rank).eager_channel()->pin(tag);
  }
  return std::as_bytes(std::span(offered_));
}

bool SharedAllreduce::readable_everywhere() const {
  if (arena_ == nullptr || !arena_->shares() || mesh_.size() == 1) return false;
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    if (rank != mesh_.rank() && mesh_.link(rank).arena() == nullptr) return false;
  }
  return true;
}

Result<bool> SharedAllreduce::agreed() {
  if (offered_.empty()) return false;
  if (Status status = eager_.await(tag_, fingerprint_); !status.ok()) return status;
  bool all = true;
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    if (rank == mesh_.rank()) continue;
    const std::uint64_t bytes = eager_.from(rank).bytes;
    if (bytes != 0 && bytes != offered_.size() * sizeof(Place)) {
      return Status(Code::kProtocol, "an eager message with another number of tensors", rank);
    }
    all = all && bytes != 0;
  }
  return all;
}

/// Shared-memory allreduce of n ranks. Steps on each rank:
/// 1. Find the tensors of all ranks in the mapped arenas.
/// 2. Reduce this rank's part of each tensor from all inputs, in rank order, to its output.
/// 3. Check that all tensors are still pinned: otherwise the sums may be of changed inputs.
/// 4. Barrier: all parts are reduced.
/// 5. Copy the other parts from the other ranks' outputs, and check the pins again.
/// Cost for tensors of b bytes: a rank reads b bytes of inputs and (n - 1) / n b bytes of outputs,
/// writes b bytes, and sends only small messages.
Status SharedAllreduce::run(std::span<const ZeroCopyTensor> tensors, ReduceOp op,
                            transport::Overwriting& undo, const std::function<Status()>& barrier) {
  auto found = find(tensors, undo);
  if (!found.ok()) return found.status();
  scratch_.resize(kPieceBytes);
  for (const Shared& tensor : found.value()) {
    Status status = each_piece(tensor, mesh_.rank(), [&](std::size_t begin, std::size_t bytes) {
      reduce(tensor, op, begin, bytes);
    });
    if (!status.ok()) return status;
  }
  // Before the other ranks use the sums of this rank.
  if (Status status = check_pinned(); !status.ok()) return status;
  if (Status status = barrier(); !status.ok()) return status;
  for (const Shared& tensor : found.value()) {
    // Each rank starts with another source, so that not all read from the same rank at once.
    for (int step = 1; step < mesh_.size(); ++step) {
      const int part = plan::around(mesh_.rank(), step, mesh_.size());
      const std::byte* const from = tensor.outputs[static_cast<std::size_t>(part)];
      Status status = each_piece(tensor, part, [&](std::size_t begin, std::size_t bytes) {
        kernels::copy(tensor.mine.output + begin, from + begin, bytes, kStore);
      });
      if (!status.ok()) return status;
    }
  }
  return check_pinned();
}

/// The addresses of every rank's tensors, from the eager messages.
Result<std::vector<SharedAllreduce::Shared>> SharedAllreduce::find(
    std::span<const ZeroCopyTensor> tensors, transport::Overwriting& undo) {
  std::vector<std::vector<Place>> places;  // per rank
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    std::vector<Place>& all = places.emplace_back(offered_);
    if (rank == mesh_.rank()) continue;
    std::memcpy(all.data(), eager_.from(rank).payload, all.size() * sizeof(Place));
    for (std::size_t i = 0; i < all.size(); ++i) {
      Status status = reach(rank, all[i], tensors[i].bytes());
      if (!status.ok()) return status;
      // Its input for this rank's part, and its part of the output.
      mesh_.link(rank).count(2 * tensors[i].bytes() / static_cast<std::size_t>(mesh_.size()));
    }
  }
  std::vector<Shared> found;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ZeroCopyTensor& mine = tensors[i];
    Shared& tensor =
        found.emplace_back(Shared{mine, {}, {}, mine.input == mine.output ? &undo : nullptr});
    for (int rank = 0; rank < mesh_.size(); ++rank) {
      const bool own = rank == mesh_.rank();
      const Place& place = places[static_cast<std::size_t>(rank)][i];
      const std::byte* const base = own ? nullptr : mesh_.link(rank).arena()->data();
      tensor.inputs.push_back(own ? mine.input : base + place.input);
      tensor.outputs.push_back(own ? mine.output : base + place.output);
    }
  }
  return found;
}

Status SharedAllreduce::reach(int rank, const Place& place, std::size_t bytes) {
  ArenaView& arena = *mesh_.link(rank).arena();
  Status status = arena.reach(place.input, bytes);
  if (status.ok()) status = arena.reach(place.output, bytes);
  if (status.ok()) return status;
  // In the next attempt this rank offers nothing, so that all ranks use another algorithm.
  arena_->stop_sharing();
  // The error names a peer, so that the server begins a new view.
  return Status(
      status.code(),
      "cannot read the tensors of rank " + std::to_string(rank) + " in place: " + status.message(),
      rank);
}

/// Calls `on_piece` for each piece of one part, in bytes from the start of the tensor. kAborted
/// when the view is to change.
Status SharedAllreduce::each_piece(const Shared& tensor, int part, const OnPiece& on_piece) const {
  const auto begins = [&](int index) {
    return plan::part_begin(tensor.mine.count, static_cast<std::size_t>(mesh_.size()),
                            static_cast<std::size_t>(index)) *
           size_of(tensor.mine.dtype);
  };
  const std::size_t end = begins(part + 1);
  for (std::size_t begin = begins(part); begin < end; begin += kPieceBytes) {
    if (mesh_.aborted()) return Status(Code::kAborted, "the view is being changed");
    const std::size_t bytes = std::min(kPieceBytes, end - begin);
    if (tensor.undo != nullptr) tensor.undo->about_to({tensor.mine.output + begin, bytes});
    on_piece(begin, bytes);
  }
  return {};
}

/// Reduces the piece of all ranks' inputs in rank order. Intermediate sums go to `scratch_`,
/// because the output of an operation in place is still an operand.
void SharedAllreduce::reduce(const Shared& tensor, ReduceOp op, std::size_t begin,
                             std::size_t bytes) {
  const DType dtype = tensor.mine.dtype;
  const bool averages = op == ReduceOp::kAverage;
  std::byte* const output = tensor.mine.output + begin;
  const std::size_t elements = bytes / size_of(dtype);
  const std::byte* left = tensor.inputs.front() + begin;
  for (std::size_t rank = 1; rank < tensor.inputs.size(); ++rank) {
    const bool to_output = rank + 1 == tensor.inputs.size() && !averages;
    std::byte* const into = to_output ? output : scratch_.data();
    kernels::reduce(dtype, op, to_output ? kStore : kernels::Store::kTemporal)(
        into, left, tensor.inputs[rank] + begin, elements);
    left = into;
  }
  if (!averages) return;
  kernels::divide(dtype, scratch_.data(), elements, static_cast<std::uint32_t>(mesh_.size()));
  kernels::copy(output, scratch_.data(), bytes, kStore);
}

/// ok if all tensors are still pinned: then everything that was read up to now is valid.
Status SharedAllreduce::check_pinned() const {
  transport::full_fence();
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    if (rank == mesh_.rank() || mesh_.link(rank).eager_channel()->pinned(tag_)) continue;
    return Status(Code::kAborted,
                  "rank " + std::to_string(rank) + " gave the operation up while it was read from");
  }
  return {};
}

void SharedAllreduce::unpin() {
  if (offered_.empty()) return;
  offered_.clear();
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    if (rank != mesh_.rank()) mesh_.link(rank).eager_channel()->unpin();
  }
  transport::full_fence();
}

}  // namespace elastic::collectives
