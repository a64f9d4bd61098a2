#include "benchmarks/peers/bare/shm_peer.hpp"

#include <utility>

#include "benchmarks/peers/bare/board.hpp"
#include "benchmarks/peers/bare/eager_exchange.hpp"
#include "benchmarks/peers/bare/host_memory.hpp"
#include "benchmarks/peers/bare/kept_input.hpp"
#include "benchmarks/peers/bare/reduction.hpp"
#include "benchmarks/peers/bare/slot_exchange.hpp"
#include "benchmarks/peers/bare/slot_two_shot.hpp"
#include "benchmarks/peers/bare/spin_backoff.hpp"

namespace elastic::bench {

namespace {

/// Polls of shared memory that take as long as one poll of elastic's links.
constexpr int kLooks = 4;

class ShmPeer final : public Peer {
 public:
  ShmPeer(const PeerStart& start, const ShmWay& way, HostMemory memory)
      : memory_(std::move(memory)),
        board_(memory_.data(), start.rank, start.ranks),
        backoff_(kLooks),
        reduction_(start.dtype, start.op, start.ranks),
        kept_(way.keeps_input),
        slots_(board_, backoff_, reduction_, way.store),
        exchange_(board_, backoff_, reduction_, way.store, kept_),
        two_shot_(board_, backoff_, reduction_, way.store, kept_) {}

  Result<PreparedCall> prepare(ConstTensorView input, TensorView output) override {
    return PreparedCall([this, from = static_cast<const std::byte*>(input.data),
                         to = static_cast<std::byte*>(output.data), bytes = output.bytes()] {
      if (bytes <= slots_.most_bytes()) return slots_.run(from, to, bytes);
      if (board_.ranks() == 2) return exchange_.run(from, to, bytes);
      return two_shot_.run(from, to, bytes);
    });
  }

 private:
  const HostMemory memory_;
  const Board board_;
  SpinBackoff backoff_;
  const Reduction reduction_;
  KeptInput kept_;
  EagerExchange slots_;
  SlotExchange exchange_;  // for two ranks
  SlotTwoShot two_shot_;   // for more ranks
};

}  // namespace

Result<std::unique_ptr<Peer>> open_shm_peer(const PeerStart& start, const ShmWay& way) {
  auto memory = HostMemory::open(start, Board::bytes(start.ranks));
  if (!memory.ok()) return memory.status();
  return std::unique_ptr<Peer>(std::make_unique<ShmPeer>(start, way, std::move(memory).value()));
}

}  // namespace elastic::bench
