#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "collectives/plan/hosts.hpp"
#include "collectives/plan/plan.hpp"

namespace elastic::plan {

/// One level of an Adasum, in which two blocks of ranks combine their vectors. Each rank of a block
/// has the same part of the block's vector as one rank of the other block, its peer.
struct AdasumLevel {
  int peer = 0;
  bool is_lower = true;  ///< this rank's block has the lower ranks: its vector comes first
  Range kept;            ///< the half that this rank combines; the peer gives its own of it
  Range given;           ///< the half that the peer combines
  /// The ranks of both blocks, in order. Together they have both vectors whole, each rank as
  /// `kept`, and so their dot products are those of the vectors.
  std::vector<int> ranks;
};

/// A rank's part in an Adasum of all ranks (Maleki and others 2020: Scaling distributed training
/// with adaptive summation).
///
/// 1. Fold, if the size is no power of two: the first ranks are pairs of which the upper one is
///    surplus. It gives its vector to the lower one, which combines both. 2^k ranks are left.
/// 2. In level i = 0 ... k - 1 blocks of 2^i ranks combine their vectors in pairs (AdasumLevel):
///    recursive vector halving, distance doubling.
/// 3. The levels backwards: peers give each other the half that they have combined.
/// 4. The lower ranks of the pairs give the result to the upper ones.
///
/// Cost: 2 k hops, in which a rank sends 2 (1 - 1 / 2^k) times its vector, and k small allreduces
/// of the dot products. A surplus rank costs its vector twice, in two hops more.
struct Adasum {
  std::optional<int> surplus;  ///< the rank that gives this one its vector first
  std::optional<int> proxy;    ///< the rank to which this one, as surplus, gives its own
  /// With a surplus rank: the ranks that have the vectors of the fold whole together, in order. It
  /// is this rank alone, unless a vector is shared (HierarchicalAdasum).
  std::vector<int> fold_ranks;
  std::vector<AdasumLevel> levels;
};

/// The part of `rank` for a vector of `bytes` bytes in Area::kData. Halves begin at multiples of 64
/// bytes.
Adasum adasum(int rank, int size, std::size_t bytes);

/// A rank's part in an Adasum of the averages of hosts (the hierarchical form in the paper).
///
/// 1. Each host has the average of its ranks' vectors. The vector has a share for each of the first
///    `owners` ranks of a host: the owner of a share averages what its host has of it.
/// 2. An Adasum of the hosts: owners of one share exchange it as ranks exchange a vector. Their dot
///    products are those of the whole vectors, because the owners of all shares add theirs up.
/// 3. Each owner gives its share of the result to the other ranks of its host.
///
/// A host counts once, however many ranks it has. The order of the hosts is that of their lowest
/// ranks. All hosts have as many owners, at most as the smallest host has ranks.
///
/// Cost between n hosts: what an Adasum of n ranks costs with a share in place of the vector.
/// Within a host with r ranks, all of them owners: 2 (1 - 1 / r) times the vector, in r hops.
struct HierarchicalAdasum {
  std::vector<int> host_ranks;    ///< ranks of this rank's host, ascending
  int place = 0;                  ///< of this rank in them
  int owners = 1;                 ///< the first ones in them
  std::size_t bytes = 0;          ///< of the vector
  std::optional<Adasum> between;  ///< of an owner: its part with those of the same share

  bool is_owner(int at) const { return at < owners; }
  Range share_of(int owner) const;
};

/// Shares of less than `least_share` bytes have fewer owners. Shares begin at multiples of 64
/// bytes.
HierarchicalAdasum hierarchical_adasum(int rank, const Hosts& hosts, std::size_t bytes,
                                       std::size_t least_share);

/// `plan`, of a rank of a group, for the ranks in `ranks`: rank i of the plan is ranks[i].
Plan among(const std::vector<int>& ranks, Plan plan);

}  // namespace elastic::plan
