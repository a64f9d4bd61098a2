#include "benchmarks/peers/bare/slot_exchange.hpp"

#include <algorithm>

#include "collectives/kernels/copy.hpp"

namespace elastic::bench {

namespace {

/// Chunks that a rank writes before it reads the first. Both ranks write at the same time, so that
/// the chunks are there when they read.
constexpr std::uint64_t kAhead = 4;

}  // namespace

/// Each chunk passes two steps on each rank: copy it to a slot for the peer, and reduce it with the
/// peer's slot, rank 0's operand first, so that both ranks have the same bits. Cost: a copy and a
/// reduction of the whole tensor on each rank.
Status SlotExchange::run(const std::byte* input, std::byte* output, std::size_t bytes) {
  const std::size_t piece = board_.slot_bytes();
  const std::uint64_t chunks = (bytes + piece - 1) / piece;
  const kernels::Store result = result_store(input, output, bytes);
  kept_.begin(input, output, bytes);
  const int peer = 1 - board_.rank();
  Outbox& own = board_.own();
  Outbox& other = board_.of(peer);
  const auto size = [&](std::uint64_t chunk) { return std::min(piece, bytes - chunk * piece); };
  std::uint64_t offered = 0;
  std::uint64_t added = 0;
  const auto may_offer = [&] {
    return offered < std::min(chunks, added + kAhead) &&
           before_ + offered <
               other.reduced.chunks.load(std::memory_order_acquire) + board_.chunks();
  };
  const auto may_add = [&] {
    return other.offered.chunks.load(std::memory_order_acquire) > before_ + added &&
           offered > added;
  };
  while (added < chunks) {
    if (may_offer()) {
      kernels::copy(board_.slot(board_.rank(), peer, before_ + offered), input + offered * piece,
                    size(offered), store_);
      own.offered.chunks.store(before_ + ++offered, std::memory_order_release);
    } else if (may_add()) {
      std::byte* const into = output + added * piece;
      const std::byte* const mine = input + added * piece;
      const std::byte* const theirs = board_.slot(peer, board_.rank(), before_ + added);
      const bool first = board_.rank() == 0;
      kept_.about_to(added * piece, size(added));
      reduction_.conclude(into, first ? mine : theirs, first ? theirs : mine, size(added), result);
      own.reduced.chunks.store(before_ + ++added, std::memory_order_release);
    } else {
      Status status = backoff_.until([&] { return may_offer() || may_add(); });
      if (!status.ok()) return status;
    }
  }
  before_ += chunks;
  return {};
}

}  // namespace elastic::bench
