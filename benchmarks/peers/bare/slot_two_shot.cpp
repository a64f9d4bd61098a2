#include "benchmarks/peers/bare/slot_two_shot.hpp"

#include <algorithm>

#include "collectives/kernels/copy.hpp"

namespace elastic::bench {

std::size_t SlotTwoShot::chunk_bytes() const {
  return board_.slot_bytes() * static_cast<std::size_t>(board_.ranks());
}

/// The part of a chunk for `rank`: whole cache lines, so whole elements. Last parts may be empty.
SlotTwoShot::Part SlotTwoShot::part(const Call& call, std::uint64_t chunk, int rank) const {
  const std::size_t begin = chunk * chunk_bytes();
  const std::size_t bytes = std::min(chunk_bytes(), call.bytes - begin);
  const auto ranks = static_cast<std::size_t>(board_.ranks());
  const std::size_t most = ((bytes + ranks - 1) / ranks + 63) / 64 * 64;
  const std::size_t first = std::min(most * static_cast<std::size_t>(rank), bytes);
  return {begin + first, std::min(most, bytes - first)};
}

/// Each chunk passes three steps on each rank: offer (copy the other ranks' parts to slots), reduce
/// (this rank's part), and allgather (copy the other ranks' results). Earlier steps have priority,
/// so that a rank works ahead. Cost for n ranks and b bytes: (n - 1) / n b bytes copied to slots, b
/// bytes read for the reduction, and (n - 1) / n b bytes copied to the output.
Status SlotTwoShot::run(const std::byte* input, std::byte* output, std::size_t bytes) {
  Call call{input, output, bytes, result_store(input, output, bytes)};
  kept_.begin(input, output, bytes);
  call.chunks = (bytes + chunk_bytes() - 1) / chunk_bytes();
  while (call.gathered < call.chunks) {
    if (may_offer(call)) {
      offer(call);
    } else if (may_reduce(call)) {
      reduce(call);
    } else if (may_allgather(call)) {
      allgather(call);
    } else {
      Status status = backoff_.until(
          [&] { return may_offer(call) || may_reduce(call) || may_allgather(call); });
      if (!status.ok()) return status;
    }
  }
  before_ += call.chunks;
  return {};
}

bool SlotTwoShot::may_offer(const Call& call) const {
  // All other ranks have read the slots.
  return call.offered < call.chunks &&
         before_ + call.offered < board_.least(&Outbox::reduced) + board_.chunks();
}

bool SlotTwoShot::may_reduce(const Call& call) const {
  const std::uint64_t chunk = before_ + call.reduced;
  return call.reduced < call.offered && board_.least(&Outbox::offered) > chunk &&
         chunk < board_.least(&Outbox::gathered) + board_.chunks();
}

bool SlotTwoShot::may_allgather(const Call& call) const {
  return call.gathered < call.reduced && board_.least(&Outbox::reduced) > before_ + call.gathered;
}

void SlotTwoShot::offer(Call& call) const {
  // Each rank starts with another peer, so that not all serve the same one first.
  for (int step = 1; step < board_.ranks(); ++step) {
    const int to = (board_.rank() + step) % board_.ranks();
    const Part theirs = part(call, call.offered, to);
    kernels::copy(board_.slot(board_.rank(), to, before_ + call.offered), call.input + theirs.begin,
                  theirs.bytes, store_);
  }
  board_.own().offered.chunks.store(before_ + ++call.offered, std::memory_order_release);
}

void SlotTwoShot::reduce(Call& call) const {
  const Part own = part(call, call.reduced, board_.rank());
  const std::uint64_t chunk = before_ + call.reduced;
  std::byte* const into = call.output + own.begin;
  kept_.about_to(own.begin, own.bytes);
  // This rank's own input is the first operand, because in place the result overwrites it.
  const std::byte* left = call.input + own.begin;
  for (int step = 1; step < board_.ranks(); ++step) {
    const int from = (board_.rank() + step) % board_.ranks();
    const std::byte* const right = board_.slot(from, board_.rank(), chunk);
    if (step + 1 < board_.ranks()) {
      reduction_.combine(into, left, right, own.bytes);
    } else {
      reduction_.conclude(into, left, right, own.bytes, kernels::Store::kTemporal);
    }
    left = into;
  }
  kernels::copy(board_.slot(board_.rank(), board_.rank(), chunk), into, own.bytes, store_);
  board_.own().reduced.chunks.store(before_ + ++call.reduced, std::memory_order_release);
}

void SlotTwoShot::allgather(Call& call) const {
  for (int step = 1; step < board_.ranks(); ++step) {
    const int from = (board_.rank() + step) % board_.ranks();
    const Part theirs = part(call, call.gathered, from);
    kept_.about_to(theirs.begin, theirs.bytes);
    kernels::copy(call.output + theirs.begin, board_.slot(from, from, before_ + call.gathered),
                  theirs.bytes, call.result_store);
  }
  board_.own().gathered.chunks.store(before_ + ++call.gathered, std::memory_order_release);
}

}  // namespace elastic::bench
