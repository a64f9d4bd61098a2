#include "collectives/plan/personal.hpp"

#include <algorithm>
#include <numeric>

#include "collectives/plan/builder.hpp"
#include "collectives/plan/parts.hpp"

namespace elastic::plan {
namespace {

using Sizes = std::vector<std::uint64_t>;

/// Bytes of a block, and where it begins among the others.
struct Block {
  Block(const Sizes& sizes, int rank)
      : offset(std::accumulate(sizes.begin(), sizes.begin() + rank, std::size_t{0})),
        bytes(static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)])) {}
  explicit Block(std::size_t whole) : offset(0), bytes(whole) {}

  std::size_t offset;
  std::size_t bytes;
};

/// Gives and takes whole blocks.
class Exchange {
 public:
  explicit Exchange(std::size_t segment_bytes) : segment_(segment_bytes) {}

  void send(int peer, const Block& from) {
    each_segment(from, [&](const Pieces& pieces, std::size_t i) {
      build_.send(peer, {Area::kInput, pieces.offset(i), pieces.bytes(i)});
    });
  }
  void receive(int peer, const Block& into) {
    each_segment(into, [&](const Pieces& pieces, std::size_t i) {
      build_.receive(peer, {Area::kData, pieces.offset(i), pieces.bytes(i)});
    });
  }
  void keep(const Block& from, const Block& into) {
    if (from.bytes == 0) return;
    build_.local(Step::Kind::kCopy, {Area::kData, into.offset, into.bytes},
                 {Area::kInput, from.offset, from.bytes});
  }
  Plan take() { return build_.take(); }

 private:
  template <typename Use>
  void each_segment(const Block& block, const Use& use) const {
    if (block.bytes == 0) return;
    const Pieces pieces(block.offset, block.bytes, segment_);
    for (std::size_t i = 0; i < pieces.count(); ++i) use(pieces, i);
  }

  std::size_t segment_;
  Builder build_;
};

}  // namespace

/// Each rank begins with the rank after it, so that no rank is the first target of several.
Plan alltoall(int rank, const Sizes& to, const Sizes& from, std::size_t segment_bytes) {
  const int size = static_cast<int>(to.size());
  Exchange exchange(segment_bytes);
  for (int hop = 1; hop < size; ++hop) {
    const int target = around(rank, hop, size);
    const int source = around(rank, -hop, size);
    exchange.send(target, Block(to, target));
    exchange.receive(source, Block(from, source));
  }
  exchange.keep(Block(to, rank), Block(from, rank));
  return exchange.take();
}

Plan gather(int rank, int root, const Sizes& bytes, std::size_t segment_bytes) {
  const int size = static_cast<int>(bytes.size());
  Exchange exchange(segment_bytes);
  const Block own(Block(bytes, rank).bytes);
  if (rank != root) {
    exchange.send(root, own);
    return exchange.take();
  }
  for (int hop = 1; hop < size; ++hop) {
    const int source = around(rank, hop, size);
    exchange.receive(source, Block(bytes, source));
  }
  exchange.keep(own, Block(bytes, rank));
  return exchange.take();
}

Plan scatter(int rank, int root, const Sizes& bytes, std::size_t segment_bytes) {
  const int size = static_cast<int>(bytes.size());
  Exchange exchange(segment_bytes);
  const Block own(Block(bytes, rank).bytes);
  if (rank != root) {
    exchange.receive(root, own);
    return exchange.take();
  }
  for (int hop = 1; hop < size; ++hop) {
    const int target = around(rank, hop, size);
    exchange.send(target, Block(bytes, target));
  }
  exchange.keep(Block(bytes, rank), own);
  return exchange.take();
}

}  // namespace elastic::plan
