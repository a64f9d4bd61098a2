#include <algorithm>
#include <cstdint>
#include <vector>

#include "collectives/plan/allreduce.hpp"
#include "collectives/plan/builder.hpp"

namespace elastic::plan {
namespace {

/// The data has a block per host, as in a ring (which this is, of hosts with one rank each), and
/// each block a share per rank of the largest host. On every host a share belongs to one rank, its
/// owner: it reduces what its host has of it, goes round the ring of all owners of this share, and
/// gives the result to its host. Smaller hosts have owners of several shares, so that on the
/// largest, which has most to reduce, all take part.
///
/// Between the hosts the owners of a share may also halve it again and again instead (Traeff 2024:
/// Optimal, non-pipelined reduce-scatter and allreduce algorithms): as many bytes, in 2 log2(hosts)
/// hops instead of 2 (hosts - 1), which counts where a block is short. Blocks so short that
/// messages would cost more than their bytes travel together, those of a half in one message.
///
/// The ring has links of its own, between hosts, so that it does not queue behind what is exchanged
/// inside hosts: the phases are planned one after the other, and run at the same time.
///
/// No receive waits for a send: what takes the place of a piece of kInput, or of a host's sum, can
/// only arrive after these had been received where they were sent to.
class Hierarchical {
 public:
  Hierarchical(int rank, const Hosts& hosts, Elements elements, std::size_t segment_bytes)
      : rank_(rank),
        hosts_(hosts),
        home_(hosts.of(rank)),
        shares_(hosts.most_ranks()),
        elements_(elements),
        segment_(whole_elements(segment_bytes, elements.bytes)),
        cells_(static_cast<std::size_t>(hosts.count()) * static_cast<std::size_t>(shares_)),
        sums_(cells_),
        written_(static_cast<std::size_t>(hosts.count())) {}

  Plan make_ring() {
    for (int step = 0; step < hosts_.count(); ++step) reduce_at_home(one(-step));
    for (int step = 0; step + 1 < hosts_.count(); ++step) {
      send(one(-step), 1);
      receive(one(-step - 1), -1, Mode::kReduce);
    }
    finish(one(1));
    for (int step = 0; step + 1 < hosts_.count(); ++step) {
      send(one(1 - step), 1);
      receive(one(-step), -1, Mode::kGather);
    }
    for (int step = 0; step < hosts_.count(); ++step) share_at_home(one(1 - step));
    return build_.take();
  }

  /// Instead of the ring: block i is the one that lies i after this host's. A host that has sums of
  /// blocks [0, left) keeps half of them: it sends the others, [half, left), to the host `half`
  /// after it, of which they are the first ones, and adds those that come from the host `half`
  /// before it. At last block 0 is left, with the sum of all hosts. Then the results take the same
  /// ways back.
  Plan make_circulant() {
    const std::size_t bytes = elements_.count * elements_.bytes;
    together_ = bytes < static_cast<std::size_t>(hosts_.count()) * std::min(segment_, kShortBlock);
    if (together_) segment_ = std::max(segment_, bytes);
    const auto halves = halvings(hosts_.count());
    for (const Blocks& blocks : in_order(halves)) reduce_at_home(blocks);
    for (const Halving& halving : halves) {
      for (const Blocks& blocks : messages(halving, 0)) send(blocks, halving.half);
      for (const Blocks& blocks : messages(halving, -halving.half)) {
        receive(blocks, -halving.half, Mode::kReduce);
      }
    }
    finish(one(0));
    for (auto halving = halves.rbegin(); halving != halves.rend(); ++halving) {
      const int half = halving->half;
      for (const Blocks& blocks : messages(*halving, -half)) send(blocks, -half);
      for (const Blocks& blocks : messages(*halving, 0)) receive(blocks, half, Mode::kGather);
    }
    if (together_) {
      share_at_home(all());
    } else {
      for (int i = 0; i < hosts_.count(); ++i) share_at_home(one(i));
    }
    return build_.take();
  }

 private:
  enum class Mode : std::uint8_t { kReduce, kGather };

  /// Blocks that lie one after another in memory.
  struct Blocks {
    int first;
    int count;
  };

  struct Halving {
    int left;  // blocks before
    int half;  // and after
  };
  /// Until one block is left; the greater half if they differ.
  static std::vector<Halving> halvings(int blocks) {
    std::vector<Halving> all;
    for (int left = blocks; left > 1; left = all.back().half) all.push_back({left, (left + 1) / 2});
    return all;
  }

  /// The blocks [half, left) of the host that lies `from` after this one, as messages. Where blocks
  /// travel together a message ends with the tensor, and with the first half of all blocks: only
  /// these have been reduced, and are in kData, when a half of what is left is sent.
  std::vector<Blocks> messages(const Halving& halving, int from) const {
    std::vector<Blocks> cut;
    for (int i = halving.half; i < halving.left; ++i) {
      const int next = block(from + i);
      if (together_ && !cut.empty() && next > 0 && i != hosts_.count() / 2) {
        ++cut.back().count;
      } else {
        cut.push_back({next, 1});
      }
    }
    return cut;
  }

  /// All blocks, in the order in which their sums are needed.
  std::vector<Blocks> in_order(const std::vector<Halving>& halves) const {
    if (together_) return {all()};
    std::vector<Blocks> order;
    for (const Halving& halving : halves) {
      for (const Blocks& blocks : messages(halving, 0)) order.push_back(blocks);
    }
    order.push_back(one(0));
    return order;
  }

  /// The block that lies `steps` after this host's in the ring.
  int block(int steps) const { return around(home_, steps, hosts_.count()); }
  Blocks one(int steps) const { return {block(steps), 1}; }
  Blocks all() const { return {0, hosts_.count()}; }
  /// The blocks of a share lie one after another.
  std::size_t cell(int block, int share) const {
    return static_cast<std::size_t>(share) * static_cast<std::size_t>(hosts_.count()) +
           static_cast<std::size_t>(block);
  }
  int owner(int host, int share) const {
    const auto& ranks = hosts_.ranks(host);
    return ranks[static_cast<std::size_t>(share) % ranks.size()];
  }
  int owner_around(int steps, int share) const { return owner(block(steps), share); }

  /// Cache lines are not shared between owners.
  static constexpr std::size_t kLine = 64;
  std::size_t begin(std::size_t cell) const {
    if (cell == cells_) return elements_.count * elements_.bytes;
    const std::size_t byte = part_begin(elements_.count, cells_, cell) * elements_.bytes;
    return byte - byte % kLine;
  }
  Pieces pieces(const Blocks& blocks, int share) const {
    const std::size_t at = begin(cell(blocks.first, share));
    return {at, begin(cell(blocks.first + blocks.count - 1, share) + 1) - at, segment_};
  }
  /// The first pieces of all shares, then the second ones, and so on: all owners can begin early.
  template <typename Use>
  void each_piece(const Blocks& blocks, const Use& use) {
    bool more = true;
    for (std::size_t i = 0; more; ++i) {
      more = false;
      for (int share = 0; share < shares_; ++share) {
        const Pieces all = pieces(blocks, share);
        if (i < all.count()) use(share, i, Range{Area::kData, all.offset(i), all.bytes(i)});
        more = more || i + 1 < all.count();
      }
    }
  }
  template <typename Use>
  void each_own_piece(const Blocks& blocks, const Use& use) {
    each_piece(blocks, [&](int share, std::size_t index, const Range& data) {
      if (owner(home_, share) == rank_) use(share, sum(blocks, share, index), data);
    });
  }
  static Range input(const Range& data) { return {Area::kInput, data.offset, data.bytes}; }

  /// The step after which kData has what is known of a piece that this rank owns: the host's sum,
  /// then that of several hosts, and the result in the end. Where blocks travel together, the
  /// same step for all of a share: each receive waits for the one before it. kNone: it is in
  /// kInput.
  std::int32_t& sum(const Blocks& blocks, int share, std::size_t index) {
    auto& of_cell = sums_[cell(together_ ? 0 : blocks.first, share)];
    if (of_cell.size() <= index) of_cell.resize(index + 1, Step::kNone);
    return of_cell[index];
  }
  /// Whether something was written to blocks that this rank owns; to all of them, or to none.
  bool written(const Blocks& blocks) const {
    return written_[static_cast<std::size_t>(blocks.first)];
  }
  void set_written(const Blocks& blocks) {
    std::fill_n(written_.begin() + blocks.first, blocks.count, true);
  }
  std::int32_t reduce_received(int peer, const Range& data, std::int32_t before, bool first) {
    const std::int32_t step = build_.receive_reduce(peer, data, first ? input(data) : data, before);
    if (first) build_.first_write(step);
    return step;
  }

  void reduce_at_home(const Blocks& blocks) {
    each_piece(blocks, [&](int share, std::size_t index, const Range& data) {
      const int to = owner(home_, share);
      if (to != rank_) {
        build_.send(to, input(data));
        return;
      }
      std::int32_t& known = sum(blocks, share, index);
      for (const int peer : hosts_.ranks(home_)) {
        if (peer != rank_) known = reduce_received(peer, data, known, known == Step::kNone);
      }
    });
    if (hosts_.ranks(home_).size() > 1) set_written(blocks);
  }
  /// To the host that lies `steps` after this one.
  void send(const Blocks& blocks, int steps) {
    each_own_piece(blocks, [&](int share, std::int32_t known, const Range& data) {
      const bool in_data = written(blocks);
      build_.send(owner_around(steps, share), in_data ? data : input(data),
                  in_data ? known : Step::kNone);
    });
  }
  void receive(const Blocks& blocks, int steps, Mode mode) {
    each_own_piece(blocks, [&](int share, std::int32_t& known, const Range& data) {
      const int peer = owner_around(steps, share);
      const bool first = !written(blocks);
      if (mode == Mode::kReduce) {
        known = reduce_received(peer, data, known, first);
        return;
      }
      known = build_.receive(peer, data, together_ ? known : Step::kNone);
      if (first) build_.first_write(known);
    });
    set_written(blocks);
  }
  void finish(const Blocks& blocks) {
    each_own_piece(blocks, [&](int, std::int32_t& known, const Range& data) {
      known = build_.finish(data, known);
    });
  }
  void share_at_home(const Blocks& blocks) {
    each_piece(blocks, [&](int share, std::size_t index, const Range& data) {
      const int from = owner(home_, share);
      if (from != rank_) {
        const std::int32_t received = build_.receive(from, data);
        build_.first_write(received);
        build_.last_use(received);
        return;
      }
      for (const int peer : hosts_.ranks(home_)) {
        if (peer != rank_) build_.send(peer, data, sum(blocks, share, index));
      }
    });
  }

  int rank_;
  const Hosts& hosts_;
  int home_;  // this rank's host
  int shares_;
  Elements elements_;
  std::size_t segment_;
  bool together_ = false;  // blocks travel together
  std::size_t cells_;
  std::vector<std::vector<std::int32_t>> sums_;  // see `sum`; by `cell`
  std::vector<bool> written_;                    // by block
  Builder build_;
};

}  // namespace

Plan ring_allreduce(int rank, int size, Elements elements, std::size_t segment_bytes) {
  return hierarchical_allreduce(rank, Hosts::one_rank_each(size), elements, segment_bytes);
}

Plan hierarchical_allreduce(int rank, const Hosts& hosts, Elements elements,
                            std::size_t segment_bytes) {
  return Hierarchical(rank, hosts, elements, segment_bytes).make_ring();
}

Plan circulant_allreduce(int rank, const Hosts& hosts, Elements elements,
                         std::size_t segment_bytes) {
  return Hierarchical(rank, hosts, elements, segment_bytes).make_circulant();
}

}  // namespace elastic::plan
