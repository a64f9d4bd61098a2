#include "benchmarks/peers/bare/eager_exchange.hpp"

#include "collectives/kernels/copy.hpp"

namespace elastic::bench {

namespace {

/// Size from which non-temporal stores are of use.
constexpr std::size_t kStreamedBytes = std::size_t{4} << 10;

}  // namespace

const std::byte* EagerExchange::payload_of(int rank) const {
  return board_.of(rank).slots[number_ % 2].payload;
}

/// 1. Copy the tensor to this rank's slot, then publish the slot by its number.
/// 2. Wait for the slots of all other ranks.
/// 3. Reduce the tensors of all ranks in rank order.
/// Cost for n ranks: one copy, n - 1 reductions, one exchange.
Status EagerExchange::run(const std::byte* input, std::byte* output, std::size_t bytes) {
  ++number_;
  BareSlot& mine = board_.own().slots[number_ % 2];
  kernels::copy(mine.payload, input, bytes,
                bytes < kStreamedBytes ? kernels::Store::kTemporal : store_);
  mine.number.store(number_, std::memory_order_release);
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    const auto& number = board_.of(rank).slots[number_ % 2].number;
    const auto there = [&] { return number.load(std::memory_order_acquire) == number_; };
    if (there()) continue;
    if (Status status = backoff_.until(there); !status.ok()) return status;
  }
  const int last = board_.ranks() - 1;
  // With two ranks the only reduction reads this rank's input directly. With more ranks the first
  // reduction may overwrite the input in place, so they read the copy in the slot.
  const auto operand = [&](int rank) {
    return last == 1 && rank == board_.rank() ? input : payload_of(rank);
  };
  const std::byte* left = operand(0);
  for (int rank = 1; rank < last; ++rank) {
    reduction_.combine(output, left, operand(rank), bytes);
    left = output;
  }
  reduction_.conclude(output, left, operand(last), bytes, kernels::Store::kTemporal);
  return {};
}

}  // namespace elastic::bench
