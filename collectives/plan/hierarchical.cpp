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
/// hops instead of 2 (hosts - 1), which counts where a block is short.
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
        sums_(cell(hosts.count(), 0)) {}

  Plan make_ring() {
    for (int step = 0; step < hosts_.count(); ++step) reduce_at_home(block(-step));
    for (int step = 0; step + 1 < hosts_.count(); ++step) {
      send(block(-step), 1);
      receive(block(-step - 1), -1, Mode::kReduce);
    }
    finish(block(1));
    for (int step = 0; step + 1 < hosts_.count(); ++step) {
      send(block(1 - step), 1);
      receive(block(-step), -1, Mode::kGather);
    }
    for (int step = 0; step < hosts_.count(); ++step) share_at_home(block(1 - step));
    return build_.take();
  }

  /// Instead of the ring: block i is the one that lies i after this host's. A host that has sums of
  /// blocks [0, left) keeps half of them: it sends the others, [half, left), to the host `half`
  /// after it, of which they are the first ones, and adds those that come from the host `half`
  /// before it. At last block 0 is left, with the sum of all hosts. Then the results take the same
  /// ways back.
  Plan make_circulant() {
    const auto halves = halvings(hosts_.count());
    for (const auto [left, half] : halves) {
      for (int i = half; i < left; ++i) reduce_at_home(block(i));
    }
    reduce_at_home(block(0));
    for (const auto [left, half] : halves) {
      for (int i = half; i < left; ++i) send(block(i), half);
      for (int i = 0; i < left - half; ++i) receive(block(i), -half, Mode::kReduce);
    }
    finish(block(0));
    for (auto halving = halves.rbegin(); halving != halves.rend(); ++halving) {
      const auto [left, half] = *halving;
      for (int i = 0; i < left - half; ++i) send(block(i), -half);
      for (int i = half; i < left; ++i) receive(block(i), half, Mode::kGather);
    }
    for (int i = 0; i < hosts_.count(); ++i) share_at_home(block(i));
    return build_.take();
  }

 private:
  enum class Mode : std::uint8_t { kReduce, kGather };

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

  /// The block that lies `steps` after this host's in the ring.
  int block(int steps) const { return around(home_, steps, hosts_.count()); }
  std::size_t cell(int block, int share) const {
    return static_cast<std::size_t>(block) * static_cast<std::size_t>(shares_) +
           static_cast<std::size_t>(share);
  }
  int owner(int host, int share) const {
    const auto& ranks = hosts_.ranks(host);
    return ranks[static_cast<std::size_t>(share) % ranks.size()];
  }
  int owner_around(int steps, int share) const { return owner(block(steps), share); }

  std::size_t begin(std::size_t cell) const {
    if (cell == sums_.size()) return elements_.count * elements_.bytes;
    // Cache lines are not shared between owners.
    constexpr std::size_t kLine = 64;
    const std::size_t byte = part_begin(elements_.count, sums_.size(), cell) * elements_.bytes;
    return byte - byte % kLine;
  }
  Pieces pieces(int block, int share) const {
    const std::size_t at = cell(block, share);
    return {begin(at), begin(at + 1) - begin(at), segment_};
  }
  /// The first pieces of all shares, then the second ones, and so on: all owners can begin early.
  template <typename Use>
  void each_piece(int block, const Use& use) {
    bool more = true;
    for (std::size_t i = 0; more; ++i) {
      more = false;
      for (int share = 0; share < shares_; ++share) {
        const Pieces all = pieces(block, share);
        if (i < all.count()) use(share, i, Range{Area::kData, all.offset(i), all.bytes(i)});
        more = more || i + 1 < all.count();
      }
    }
  }
  template <typename Use>
  void each_own_piece(int block, const Use& use) {
    each_piece(block, [&](int share, std::size_t index, const Range& data) {
      if (owner(home_, share) == rank_) use(share, sum(block, share, index), data);
    });
  }
  static Range input(const Range& data) { return {Area::kInput, data.offset, data.bytes}; }

  /// The step after which kData has what is known of a piece that this rank owns: the host's sum,
  /// then that of several hosts, and the result in the end. kNone: it is in kInput.
  std::int32_t& sum(int block, int share, std::size_t index) {
    auto& of_cell = sums_[cell(block, share)];
    if (of_cell.size() <= index) of_cell.resize(index + 1, Step::kNone);
    return of_cell[index];
  }
  std::int32_t reduce_received(int peer, const Range& data, std::int32_t before) {
    const bool first = before == Step::kNone;
    const std::int32_t step = build_.receive_reduce(peer, data, first ? input(data) : data, before);
    if (first) build_.first_write(step);
    return step;
  }

  void reduce_at_home(int block) {
    each_piece(block, [&](int share, std::size_t index, const Range& data) {
      const int to = owner(home_, share);
      if (to != rank_) {
        build_.send(to, input(data));
        return;
      }
      std::int32_t& known = sum(block, share, index);
      for (const int peer : hosts_.ranks(home_)) {
        if (peer != rank_) known = reduce_received(peer, data, known);
      }
    });
  }
  /// To the host that lies `steps` after this one.
  void send(int block, int steps) {
    each_own_piece(block, [&](int share, std::int32_t known, const Range& data) {
      build_.send(owner_around(steps, share), known == Step::kNone ? input(data) : data, known);
    });
  }
  void receive(int block, int steps, Mode mode) {
    each_own_piece(block, [&](int share, std::int32_t& known, const Range& data) {
      const int peer = owner_around(steps, share);
      if (mode == Mode::kReduce) {
        known = reduce_received(peer, data, known);
        return;
      }
      const bool first = known == Step::kNone;
      known = build_.receive(peer, data);
      if (first) build_.first_write(known);
    });
  }
  void finish(int block) {
    each_own_piece(block, [&](int, std::int32_t& known, const Range& data) {
      known = build_.finish(data, known);
    });
  }
  void share_at_home(int block) {
    each_piece(block, [&](int share, std::size_t index, const Range& data) {
      const int from = owner(home_, share);
      if (from != rank_) {
        const std::int32_t received = build_.receive(from, data);
        build_.first_write(received);
        build_.last_use(received);
        return;
      }
      for (const int peer : hosts_.ranks(home_)) {
        if (peer != rank_) build_.send(peer, data, sum(block, share, index));
      }
    });
  }

  int rank_;
  const Hosts& hosts_;
  int home_;  // this rank's host
  int shares_;
  Elements elements_;
  std::size_t segment_;
  std::vector<std::vector<std::int32_t>> sums_;  // see `sum`; by block, then share
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
